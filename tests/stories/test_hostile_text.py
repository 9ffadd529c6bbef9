"""Whatever an agent prints or calls a file, nothing of it steers a terminal, a report or a brief."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project

STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
HOSTILE = (
    "\x1b]0;owned\x07 \x1b]52;c;b3duZWQ=\x07 \x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\ \x1b[2J\x1b[31mred "
    "\x9b31mred \x9d0;owned\x9c \u202egnp.exe\u202c \u2066x\u2069 over\rwritten \x7f \x08\x08 \u2028# A heading"
)
TITLE = HOSTILE.replace("\r", "").replace("\u2028", "").replace("\x85", "")
COMMANDS = (
    ("status",),
    ("status", "--json"),
    ("show", "1.1"),
    ("show", "1.1", "--json"),
    ("explain", "1.1"),
    ("log",),
    ("log", "--json"),
    ("questions",),
    ("doctor",),
    ("doctor", "--json"),
    ("plan", "tasks.md"),
    ("plan", "tasks.md", "--json"),
    ("plan", HOSTILE.replace("\x00", "").replace("/", "")),
    ("show", HOSTILE),
    ("explain", HOSTILE),
    (HOSTILE,),
    ("status", f"--{TITLE}"),
    ("run", "tasks.md", "--agent", HOSTILE),
)


def test_nothing_from_an_agent_a_plan_or_a_file_name_steers_a_terminal(project: "Project") -> None:
    name = f"odd{TITLE.replace('/', '')}.txt"
    project.plan(("1.1", f"Make {TITLE} a", f"echo '{TITLE}'; exit 1"))
    steps = [{"print": HOSTILE}, {"error": HOSTILE}, {"write": name, "text": HOSTILE}]
    project.script(_1_1=[steps] * 6)
    result = {"run": project.run()}
    result |= {f"unstuck {' '.join(command)}": project.ask(*command) for command in COMMANDS}
    offenders = [
        f"{command!r}: {found[0]!r} in {text[max(0, found.start() - 40) : found.end() + 40]!r}"
        for command, answer in result.items()
        for text in (answer.out, answer.err)
        if (found := STEERS.search(text))
    ]
    traces = [
        command for command, answer in result.items() if "fault of ours" in answer.err or "Traceback" in answer.err
    ]
    # What an agent printed is kept as it was, and an index of Git is binary.
    raw = {".log", ".out", ".err", ".db", ".db-wal", ".db-shm", ".index"}
    for path, content in project.stored_bytes():
        text = content.decode(errors="replace")
        if not raw & set(path.suffixes) and (found := STEERS.search(text)):
            offenders.append(f"{path.name}: {found[0]!r} in {text[max(0, found.start() - 40) : found.end() + 40]!r}")
    assert (offenders, traces) == ([], [])
