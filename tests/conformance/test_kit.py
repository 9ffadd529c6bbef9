"""The kit's own instruments: what they do not see, no row of the matrix could."""

import subprocess
from uuid import uuid4

import pytest
from tests.conformance.agents import AGENTS
from tests.conformance.clis import pinned
from tests.conformance.conftest import MARK, PROC, marked
from tests.conformance.scenarios import SCENARIOS
from tests.waiting import wait_until

from unstuck.model.failure import Kind


@pytest.mark.skipif(not PROC.is_dir(), reason="orphans are looked for in /proc, and there is none")
def test_an_orphan_is_found_by_what_it_inherited() -> None:
    mark = f"{MARK}={uuid4().hex}"
    name, value = mark.split("=")
    with subprocess.Popen(["sleep", "600"], env={name: value}, start_new_session=True) as orphan:
        # Popen is back a moment before the new program's environment can be read.
        wait_until(lambda: ["sleep", "600", ""] in marked(mark), "the orphan")
        orphan.kill()
    assert list(marked(mark)) == []


def test_every_agent_is_pinned_to_a_version() -> None:
    assert list(pinned()) == list(AGENTS)
    assert all(cli.version[0].isdigit() for cli in pinned().values())


def test_every_row_names_agents_and_kinds_that_exist() -> None:
    for scenario in SCENARIOS.values():
        assert set(scenario.unlike) | set(scenario.only) <= set(AGENTS)
        for expected in (scenario.expected, *scenario.unlike.values()):
            assert {Kind(kind) for kind in expected.kinds} <= set(Kind)
    assert {row for settling in AGENTS.values() for row in settling.rows} <= set(SCENARIOS)
