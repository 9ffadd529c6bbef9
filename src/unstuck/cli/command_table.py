"""The commands with their modules, summaries and examples, in the sections of `unstuck --help`."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

CommandModule = Literal[
    "diagnose_command",
    "inspect_commands",
    "plan_commands",
    "reference_commands",
    "remedy_commands",
    "request_commands",
    "run_commands",
    "servers",
    "setup_commands",
    "verify_cli",
]
"""A module of this package. It is imported only when one of its commands runs or prints its help."""


class CommandEntry(NamedTuple):
    """One command of the command line."""

    name: str
    """The name of the command and of its function in the module."""
    module: CommandModule
    summary: str
    examples: tuple[str, ...] = ()


SECTIONS: Final[Mapping[str, tuple[CommandEntry, ...]]] = {
    "Start": (
        CommandEntry(
            "demo",
            "run_commands",
            "See the whole story in a minute, in a scratch repository.",
            ("unstuck demo --keep /tmp/cart",),
        ),
        CommandEntry(
            "init",
            "setup_commands",
            "Write unstuck.toml for this repository.",
            ("unstuck init --force",),
        ),
        CommandEntry(
            "doctor",
            "setup_commands",
            "Say what is missing or left over, and what to do about it.",
            ("unstuck doctor --json",),
        ),
        CommandEntry(
            "agents",
            "setup_commands",
            "List the coding agents found; read a session; check one.",
            (
                "unstuck agents",
                "unstuck agents read claude session.jsonl --exit-code 1 --json",
                "unstuck agents check codex",
            ),
        ),
        CommandEntry(
            "draft",
            "plan_commands",
            "Let an agent write a plan from a goal, a PRD or an issue.",
            (
                "unstuck draft 'Add a --depth option to the walk'",
                "unstuck draft docs/prd.md --agent claude -o specs/depth/tasks.md",
                "gh issue view 12 | unstuck draft - --yes",
            ),
        ),
        CommandEntry(
            "plan",
            "plan_commands",
            "Read and check a plan; start nothing.",
            ("unstuck plan specs/login",),
        ),
    ),
    "Run": (
        CommandEntry(
            "go",
            "run_commands",
            "Reach a goal: one task, no plan file.",
            (
                "unstuck go 'Add a maxLength option'",
                "unstuck go 'Fix the crash on empty input' --check 'pytest tests/test_empty.py' --agent codex",
            ),
        ),
        CommandEntry(
            "run",
            "run_commands",
            "Run a plan, or go on with its unfinished run.",
            (
                "unstuck run specs/login --agent 'my-agent -p'",
                "unstuck run tasks.md --agent a --agent b --parallel 2 --max-time 8h",
            ),
        ),
        CommandEntry(
            "resume",
            "run_commands",
            "Go on with the latest run, or the one named.",
            ("unstuck resume --quiet",),
        ),
        CommandEntry(
            "stop",
            "request_commands",
            "Ask the running supervisor to stop.",
            ("unstuck stop",),
        ),
    ),
    "Look": (
        CommandEntry(
            "status",
            "inspect_commands",
            "Say where every task stands.",
            ("unstuck status --watch",),
        ),
        CommandEntry(
            "show",
            "inspect_commands",
            "Tell the story of one task.",
            ("unstuck show 1.3",),
        ),
        CommandEntry(
            "diff",
            "inspect_commands",
            "Show what a task's attempt changed.",
            ("unstuck diff 1.3 2 --stat",),
        ),
        CommandEntry(
            "log",
            "inspect_commands",
            "Print the journal.",
            ("unstuck log -f",),
        ),
        CommandEntry(
            "runs",
            "inspect_commands",
            "List all runs of this repository.",
            ("unstuck runs",),
        ),
        CommandEntry(
            "report",
            "inspect_commands",
            "Print what waits for a person.",
            ("unstuck report --md > run.md",),
        ),
        CommandEntry(
            "pr",
            "inspect_commands",
            "Make a pull request of what landed.",
            ("unstuck pr --draft-file",),
        ),
        CommandEntry(
            "explain",
            "inspect_commands",
            "Tell why a task went as it did.",
            ("unstuck explain 1.3 --profile standard",),
        ),
        CommandEntry(
            "board",
            "servers",
            "Attach to a run from any terminal.",
            ("unstuck board",),
        ),
        CommandEntry(
            "ui",
            "servers",
            "Serve runs as a live board in the browser.",
            ("unstuck ui --open",),
        ),
    ),
    "Take part": (
        CommandEntry(
            "answer",
            "request_commands",
            "Answer what a stuck task asks.",
            ("unstuck answer 1.3 'yes, drop the old table'",),
        ),
        CommandEntry(
            "retry",
            "request_commands",
            "Give a task a fresh budget, with a hint.",
            ("unstuck retry 1.3 --hint 'the fixture is in tests/old'",),
        ),
        CommandEntry(
            "skip",
            "request_commands",
            "Settle a task without doing it.",
            ("unstuck skip 1.3 --because 'not worth it'",),
        ),
        CommandEntry(
            "accept",
            "request_commands",
            "Vouch for a task's work as it is.",
            ("unstuck accept 1.3 --because 'the check is wrong'",),
        ),
        CommandEntry(
            "approve",
            "request_commands",
            "Let a held run go on, or work land.",
            (
                "unstuck approve",
                "unstuck approve 1.3",
            ),
        ),
        CommandEntry(
            "reset",
            "request_commands",
            "Do a task again, even if it landed.",
            ("unstuck reset 1.3",),
        ),
        CommandEntry(
            "rollback",
            "request_commands",
            "Move the run's branch back.",
            (
                "unstuck rollback 1.3",
                "unstuck rollback --to 1a2b3c4",
            ),
        ),
        CommandEntry(
            "undo",
            "request_commands",
            "Take back what a command or a rollback did.",
            ("unstuck undo 42",),
        ),
        CommandEntry(
            "prune",
            "request_commands",
            "Remove what is clean, merged and unused.",
            ("unstuck prune --dry-run",),
        ),
    ),
    "By hand": (
        CommandEntry(
            "verify",
            "verify_cli",
            "Run the checks and the tamper audit by hand.",
            (
                "unstuck verify                 the commit at HEAD",
                "unstuck verify 1.3             the last work on task 1.3",
                "unstuck verify --sarif f.sarif",
            ),
        ),
        CommandEntry(
            "diagnose",
            "diagnose_command",
            "Say what a command's output means.",
            ("make 2>&1 | unstuck diagnose --exit-code 2 --json",),
        ),
        CommandEntry(
            "remedy",
            "remedy_commands",
            "Find a way out of a failed call, and try it.",
            (
                "git clone URL 2>&1 | unstuck remedy --exit-code 127 --command 'git clone URL'",
                "unstuck remedy --tool read_file --arg file=config.yml --tools read_dir,read_file error.txt --json",
                "unstuck remedy error.txt --command 'curl -O URL' --run --allow caution",
            ),
        ),
        CommandEntry(
            "experience",
            "remedy_commands",
            "Show what remedies and agents taught.",
            ("unstuck experience --export lessons.json",),
        ),
    ),
    "Many machines": (
        CommandEntry(
            "worker",
            "servers",
            "Do the work of runs, as a member of a fleet.",
        ),
        CommandEntry(
            "fleet",
            "servers",
            "Say which workers there are, and what they do.",
        ),
    ),
    "Read": (
        CommandEntry(
            "docs",
            "reference_commands",
            "Print a page of the documentation.",
            ("unstuck docs configuration",),
        ),
        CommandEntry(
            "config",
            "reference_commands",
            "Print every setting, and where it comes from.",
            ("unstuck config limits",),
        ),
        CommandEntry(
            "completion",
            "reference_commands",
            "Let your shell complete commands and options.",
            ("unstuck completion zsh",),
        ),
    ),
    "More": (
        CommandEntry(
            "replay",
            "inspect_commands",
            "Decide a run again under another profile.",
            ("unstuck replay --profile standard",),
        ),
        CommandEntry(
            "policy",
            "inspect_commands",
            "Print the profiles and their ladders.",
            ("unstuck policy adaptive",),
        ),
        CommandEntry(
            "install",
            "servers",
            "Let a coding agent call us after every tool call.",
            ("unstuck install claude --project --dry-run",),
        ),
        CommandEntry(
            "uninstall",
            "servers",
            "Take that back.",
            ("unstuck uninstall claude",),
        ),
        CommandEntry(
            "hook",
            "servers",
            "Answer an agent's hook.",
            ("unstuck hook claude < event.json",),
        ),
        CommandEntry(
            "mcp",
            "servers",
            "Serve recovery as tools over MCP.",
            ("unstuck mcp --workspace .",),
        ),
        CommandEntry(
            "bench",
            "reference_commands",
            "Run the benchmarks.",
            ("unstuck bench parallel --seconds 2 --json",),
        ),
    ),
}
COMMANDS: Final[Mapping[str, CommandEntry]] = {entry.name: entry for entries in SECTIONS.values() for entry in entries}
