"""Real agents and a scripted model, through `unstuck run`: however a session ends, the task must come out right.

The agents come from the cache that `make conformance` fills; without them every test here is skipped.
"""

import errno
import json
import signal
import socket
from collections.abc import Callable, Sequence
from itertools import groupby

import pytest
from tests.conformance.agents import AGENTS
from tests.conformance.clis import pinned
from tests.conformance.conftest import PROC, Site
from tests.conformance.island import alone
from tests.conformance.scenarios import DONE, DRAFT, LANDED, SCENARIOS, WORK, Scenario
from tests.conformance.server import ModelServer
from tests.conformance.turns import Run, Stall
from tests.waiting import wait_until

from unstuck.agents.manifests import agent_catalog
from unstuck.model.failure import KINDS, Kind
from unstuck.process.sandbox import sandbox_problem

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(500)]
SECONDS = 60
MakeSite = Callable[..., Site]

THOROUGH = [name for name, settling in AGENTS.items() if not settling.rows]
ROWS = {
    f"{agent}-{name}": (agent, scenario)
    for agent, settling in AGENTS.items()
    for name, scenario in SCENARIOS.items()
    if name in (settling.rows or SCENARIOS) and agent in (scenario.only or AGENTS)
}


@pytest.fixture(autouse=True)
def in_the_cache(request: pytest.FixtureRequest) -> None:
    """Skip an agent that is not in the cache."""
    if "agent" not in request.fixturenames:
        return
    cli = pinned()[request.getfixturevalue("agent")]
    if not PROC.is_dir():
        pytest.skip("orphans are looked for in /proc, and there is none")
    if not cli.installed:
        pytest.skip(f"{cli.name} {cli.version} is not in {cli.folder}: run `make conformance CLIS={cli.name}`")


@pytest.mark.parametrize(("agent", "scenario"), ROWS.values(), ids=ROWS)
def test_however_a_session_ends_the_task_comes_out_right(site: MakeSite, agent: str, scenario: Scenario) -> None:
    expected = scenario.of(agent)
    with ModelServer(scenario.turns, window=scenario.window) as model:
        here = site(agent, model, silence=scenario.silence, settings=scenario.settings)
        told = here.run()
        assert told.code == expected.exit, f"{told}\n{here.story()}"
        kinds = failed(here)
        assert [kind for kind, _ in groupby(kinds)] == list(expected.kinds), here.story()
        assert json.loads(told.out)["tasks"]["1.1"]["attempts"] == expected.attempts, here.story()
        assert charged(kinds) == expected.attempts - 1, here.story()
        assert expected.heard in model.asked[-1].conversation
        assert landed(here) == (expected.exit == LANDED)
        assert model.left == () or expected.exit != LANDED
        assert here.leftovers() == []
        assert set(model.escapes) <= AGENTS[agent].tries


@pytest.mark.parametrize("agent", THOROUGH)
def test_a_run_whose_supervisor_was_killed_goes_on(site: MakeSite, agent: str) -> None:
    with ModelServer([DRAFT, Stall(), *WORK]) as model:
        here = site(agent, model)
        with here.start_run() as supervisor:
            wait_until(lambda: Stall() in model.answers)
            supervisor.send_signal(signal.SIGKILL)
            supervisor.communicate(timeout=SECONDS)
        told = here.unstuck("resume", "--json")
        assert told.code == 0, f"{told}\n{here.story()}"
        assert failed(here) == ["interrupted"]
        assert landed(here)
        assert here.leftovers() == []


@pytest.mark.parametrize("agent", THOROUGH)
def test_a_stopped_run_leaves_nothing_running_and_goes_on(site: MakeSite, agent: str) -> None:
    with ModelServer([Run("setsid tail -f /dev/null > /dev/null 2>&1 & echo started"), Stall(), *WORK]) as model:
        here = site(agent, model)
        with here.start_run() as supervisor:
            wait_until(lambda: Stall() in model.answers)
            supervisor.send_signal(signal.SIGTERM)
            supervisor.send_signal(signal.SIGTERM)
            supervisor.communicate(timeout=SECONDS)
        assert supervisor.returncode == 143
        assert here.leftovers() == []
        told = here.unstuck("resume", "--json")
        assert told.code == 0, f"{told}\n{here.story()}"
        assert charged(failed(here)) == 0
        assert landed(here)


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there is a sandbox")
@pytest.mark.parametrize("agent", [name for name in AGENTS if agent_catalog()[name].writes])
def test_an_agent_that_says_what_it_writes_works_in_a_sandbox(site: MakeSite, agent: str) -> None:
    """It does the work only where the repository that it borrows objects from is not to be seen."""
    users = '"$(dirname "$(cat .git/objects/info/alternates)")"'
    with ModelServer(
        [Run(f"test -d {users}/objects && test ! -e {users}/HEAD && echo hello > greeting.txt"), DONE]
    ) as model:
        here = site(agent, model)
        told = here.run()
        assert told.code == 0, f"{told}\n{here.story()}"
        assert landed(here)
        assert here.leftovers() == []


def test_the_tests_themselves_are_cut_off_from_the_network() -> None:
    if not alone():
        pytest.skip(
            "this machine gives no network namespace, or `make matrix` was not used: only proxies hold agents back"
        )
    with socket.socket() as outwards, pytest.raises(OSError, match="unreachable") as refused:
        outwards.connect(("192.0.2.1", 443))
    assert refused.value.errno == errno.ENETUNREACH


def failed(here: Site) -> list[str]:
    """Return how the sessions failed, in order."""
    return [event["failure"]["kind"] for event in here.events("classified") if event["failure"]]


def landed(here: Site) -> bool:
    """Whether the work is on the user's branch, in a commit that says where it came from."""
    trailers = here.git("log", "-1", "--format=%(trailers)", "--", "greeting.txt")
    return "Unstuck-Task: 1.1" in trailers and here.git("show", "HEAD:greeting.txt") == "hello"


def charged(kinds: Sequence[str]) -> int:
    """Return how many attempts were put on the agent's bill."""
    return sum(KINDS[Kind(kind)].charged for kind in kinds)
