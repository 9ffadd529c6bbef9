"""Real agents write plans: two mistakes are handed back and gone in the second round, and nothing destructive runs."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conformance.agents import AGENTS
from tests.conformance.clis import pinned
from tests.conformance.conftest import Site
from tests.conformance.server import ModelServer
from tests.conformance.turns import Run, Say

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]
MakeSite = Callable[..., Site]
WROTE = Say("The plan is in plan.md.")
GOOD = """# Greetings

- [ ] 1.1 Write a greeting
  - **Files**: `greeting.txt`
  - **Verify**: `grep -q hello greeting.txt`
- [ ] 1.2 Write a farewell
  - **Depends**: 1.1
  - **Files**: `farewell.txt`
  - **Verify**: `grep -q bye farewell.txt`
"""
TWO_MISTAKES = GOOD.replace("Depends**: 1.1", "Depends**: 7").replace("grep -q bye farewell.txt", "test -f tasks.md")


@pytest.fixture(params=["claude", "codex"])
def agent(request: pytest.FixtureRequest) -> str:
    """Name an agent that is in the cache."""
    cli = pinned()[request.param]
    if not cli.installed:
        pytest.skip(f"{cli.name} {cli.version} is not in {cli.folder}: run `make conformance CLIS={cli.name}`")
    return cli.name


def writes(text: str) -> Run:
    return Run(f"printf %s {shlex.quote(text)} > plan.md")


def test_a_plan_with_two_mistakes_is_repaired_in_the_second_round(site: MakeSite, agent: str) -> None:
    with ModelServer([writes(TWO_MISTAKES), WROTE, writes(GOOD), WROTE]) as model:
        here = site(agent, model)
        told = here.unstuck("draft", "Greet and part", "--agent", agent, "-o", "plan.md", "--yes", "--json")
        assert told.code == 0, told
        made = json.loads(told.out)
        assert (made["rounds"], [proof["standing"] for proof in made["proofs"]]) == (2, ["red", "red"])
        assert "depends on an unknown task '7'" in model.asked[2].conversation
        assert "passes already on HEAD" in model.asked[2].conversation
        assert (here.root / "plan.md").read_text() == GOOD
        assert model.left == ()
        assert set(model.escapes) <= AGENTS[agent].tries


def test_a_destructive_check_is_not_run(site: MakeSite, agent: str, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure.txt"
    treasure.write_text("gold\n")
    harm = GOOD.replace("grep -q bye farewell.txt", f"rm -f {treasure} && test -f farewell.txt")
    with ModelServer([writes(harm), WROTE] * 3) as model:
        here = site(agent, model)
        told = here.unstuck("draft", "Greet and part", "--agent", agent, "-o", "plan.md", "--yes")
        assert told.code == 64, told
        assert "deletes" in told.err
        assert treasure.exists()
        assert not (here.root / "plan.md").exists()
        assert "It was not run" in model.asked[-1].conversation
