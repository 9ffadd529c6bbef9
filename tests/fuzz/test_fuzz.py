"""No bytes in any input that we read end in a traceback. `make fuzz` asks for longer than `make test`."""

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.fuzz.mutation import mutated
from tests.project import Project

if TYPE_CHECKING:
    from tests.project import Told

CORPUS = Path(__file__).parent / "corpus"
SESSIONS = Path(__file__).parents[1] / "agents" / "sessions"
ROUNDS = int(os.environ.get("UNSTUCK_FUZZ_ROUNDS", "6"))
SEED = int(os.environ.get("UNSTUCK_FUZZ_SEED", "1"))

FILES = {
    # what the bytes are: where they stand, and the command that reads them
    "tasks.md": ("plan", "tasks.md", ("plan", "tasks.md")),
    "superplan": ("plan", "plan.md", ("plan", "plan.md", "--json")),
    "implementation plan": ("plan", "implementation_plan.json", ("plan", "implementation_plan.json")),
    "task list": ("plan", "tasks.json", ("plan", "tasks.json")),
    "checklist": ("plan", "todo.md", ("plan", "todo.md", "--format", "checklist")),
    "settings": ("settings", "unstuck.toml", ("plan", "good.md")),
    "rules": ("rules", "unstuck.rules.toml", ("diagnose", "good.md")),
    "output": ("output", "output.txt", ("diagnose", "output.txt", "--json")),
    "remedy": ("output", "output.txt", ("remedy", "output.txt", "--command", "npm test", "--exit-code", "1", "--json")),
    "lessons": ("lessons", "lessons.json", ("experience", "--import", "lessons.json")),
}


def is_fault(told: "Told") -> bool:
    return "fault of ours" in told.err or "Traceback" in told.err


def variants(seeds: list[bytes], rounds: int) -> Iterator[bytes]:
    yield from seeds[:3]
    chance = random.Random(SEED)
    yield from (mutated(chance.choice(seeds), seeds, chance) for _ in range(rounds))


@pytest.mark.parametrize("what", FILES)
def test_no_bytes_in_a_file_end_in_a_traceback(project: Project, what: str) -> None:
    folder, name, command = FILES[what]
    project.file("good.md", "- [ ] 1.1 One\n  - **Verify**: `true`\n")
    seeds = [path.read_bytes() for path in sorted((CORPUS / folder).iterdir())]
    offenders = []
    for content in variants(seeds, ROUNDS):
        (project.root / name).write_bytes(content)
        told = project.ask(*command)
        if is_fault(told):
            offenders.append(f"{content[:2000]!r}\n{told.err[-800:]}")
    assert offenders == []


@pytest.mark.parametrize("agent", sorted(path.stem for path in SESSIONS.glob("*.json")))
def test_no_stream_of_an_agent_ends_in_a_traceback(project: Project, agent: str) -> None:
    sessions = json.loads((SESSIONS / f"{agent}.json").read_text(encoding="utf-8"))
    seeds = ["\n".join(one["stdout"]).encode() for one in sessions]
    offenders = []
    for content in variants(seeds[:40], ROUNDS):
        (project.root / "stream").write_bytes(content)
        told = project.ask("agents", "read", agent, "stream", "--stderr", "stream", "--exit-code", "1", "--json")
        if is_fault(told):
            offenders.append(f"{content[:2000]!r}\n{told.err[-800:]}")
    assert offenders == []


@pytest.mark.parametrize("command", [("status",), ("show", "1.2"), ("log", "--json"), ("explain", "1.2")], ids=" ".join)
def test_no_row_of_the_journal_ends_in_a_traceback(
    half_done: Project, tmp_path: Path, command: tuple[str, ...]
) -> None:
    copy = Project(tmp_path / "project", half_done.nursery)
    shutil.copytree(half_done.root, copy.root, symlinks=True)
    journal = copy.store / "journal.db"
    with closing(sqlite3.connect(journal)) as rows:
        for (trigger,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            rows.execute(f"DROP TRIGGER {trigger}")  # a hand that edits the file does not ask
        bodies = [(seq, str(body).encode()) for seq, body in rows.execute("SELECT seq, body FROM events ORDER BY seq")]
    chance = random.Random(SEED)
    offenders = []
    for _ in range(ROUNDS * 2):
        seq, body = chance.choice(bodies)
        bad = mutated(body, [one for _, one in bodies], chance)
        with closing(sqlite3.connect(journal)) as rows, rows:
            stored = bad if chance.random() < 0.2 else bad.decode(errors="replace")  # a blob now and then
            rows.execute("UPDATE events SET body = ? WHERE seq = ?", (stored, seq))
        told = copy.ask(*command)
        if is_fault(told):
            offenders.append(f"{stored[:2000]!r}\n{told.err[-800:]}")
        with closing(sqlite3.connect(journal)) as rows, rows:
            rows.execute("UPDATE events SET body = ? WHERE seq = ?", (body.decode(), seq))
    assert offenders == []
