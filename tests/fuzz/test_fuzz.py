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
from tests.fuzz.mutation import AWKWARD, mutated
from tests.project import Project

from unstuck.compat.run_files import Projections
from unstuck.hook.entry import respond
from unstuck.hook.hook_input import MOMENTS, read_event
from unstuck.journal.sqlite import SqliteJournal
from unstuck.plans.plan_file import open_plan

if TYPE_CHECKING:
    from tests.project import CommandResult

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


def is_fault(told: "CommandResult") -> bool:
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


def test_no_file_that_people_edit_ends_in_a_traceback(half_done: Project, tmp_path: Path) -> None:
    home = tmp_path / ".unstuck"
    shutil.copytree(half_done.home, home, symlinks=True)
    journal = SqliteJournal(half_done.store / "journal.db")
    run = journal.runs()[-1]
    entries = tuple(journal.read(run))
    journal.close()
    plan = open_plan(half_done.root / "tasks.md", None)
    projections = Projections(home=home, store=half_done.store, plan=plan, told=lambda _: None)
    files = [path for path in sorted(home.rglob("*.json")) if path.is_file()]
    seeds = {path: path.read_bytes() for path in files}
    chance, offenders = random.Random(SEED), []
    for _ in range(ROUNDS * 10):
        path = chance.choice(files)
        path.write_bytes(bad := mutated(seeds[path], list(seeds.values()), chance))
        try:
            list(projections.edits(run, entries))
        except Exception as error:  # noqa: BLE001  # what is looked for
            offenders.append(f"{path.name}: {bad[:2000]!r}\n{error!r}")
        path.write_bytes(seeds[path])
    assert offenders == []


def test_no_event_of_an_agents_hook_ends_in_a_fault(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = str(project.root).encode()
    seeds = [path.read_bytes().replace(b"@", place) for path in sorted((CORPUS / "hook").iterdir())]
    chance, offenders = random.Random(SEED), []
    for content in [*seeds, *(mutated(chance.choice(seeds), seeds, chance) for _ in range(ROUNDS * 5))]:
        try:
            event = json.loads(content)
        except (ValueError, RecursionError):
            event = _nested(json.loads(chance.choice(seeds)), chance)
        agent = chance.choice([*MOMENTS])
        try:
            heard = read_event(agent, event)
            json.dumps(respond(heard) if heard.moment else {})
        except Exception as error:  # noqa: BLE001  # what is looked for
            offenders.append(f"{agent}: {json.dumps(event)[:2000]}\n{error!r}")
    assert offenders == []


def _nested(event: object, chance: random.Random) -> object:
    """Put something odd into the place of one part: most bad bytes are no JSON at all."""
    odd: tuple[object, ...] = (
        None,
        0,
        -1.5,
        True,
        [],
        {},
        [[]],
        {"a": {}},
        chance.choice(AWKWARD).decode(errors="replace"),
        10**40,
    )
    if isinstance(event, dict) and event and chance.random() < 0.9:
        key = chance.choice([*event])
        return {**event, key: _nested(event[key], chance)}
    return chance.choice(odd)


def test_no_request_in_the_journal_ends_in_a_traceback(half_done: Project, tmp_path: Path) -> None:
    copy = Project(tmp_path / "project", half_done.fork_server)
    shutil.copytree(half_done.root, copy.root, symlinks=True)
    path = copy.store / "journal.db"
    with closing(sqlite3.connect(path)) as rows:
        for (trigger,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            rows.execute(f"DROP TRIGGER {trigger}")
        (run,) = rows.execute("SELECT max(run) FROM events").fetchone()
    chance, offenders = random.Random(SEED), []
    words: tuple[object, ...] = (
        "accept",
        "undo",
        "rollback",
        "run",
        "1.2",
        "1.1",
        "",
        "0",
        -1,
        1.5,
        2**62,
        b"\xff",
        *map(bytes.hex, AWKWARD),
    )
    for _ in range(ROUNDS):
        odd = [chance.choice((*words, chance.choice(AWKWARD).decode(errors="replace"))) for _ in range(10)]
        with closing(sqlite3.connect(path)) as rows, rows:
            rows.execute(
                "INSERT INTO requests (run, at, verb, task, text, shown, who, place, inside, pid, token) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run, *odd),
            )
        for command in (("retry", "1.2"), ("log",)):
            told = copy.ask(*command)
            if is_fault(told):
                offenders.append(f"{odd!r}\n{told.err[-800:]}")
    assert offenders == []


@pytest.mark.parametrize("command", [("status",), ("show", "1.2"), ("log", "--json"), ("explain", "1.2")], ids=" ".join)
def test_no_row_of_the_journal_ends_in_a_traceback(
    half_done: Project, tmp_path: Path, command: tuple[str, ...]
) -> None:
    copy = Project(tmp_path / "project", half_done.fork_server)
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
