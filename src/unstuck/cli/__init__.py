"""Edge: The command line: a table of commands, each loaded when it is called; our errors become messages and exit codes."""

import codecs
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from unstuck import __version__
from unstuck.errors import UnstuckError
from unstuck.tell import visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

USAGE, INTERRUPTED, BROKEN_PIPE = 64, 130, 141
COMPLETE = "_UNSTUCK_COMPLETE"
"""Set by a shell that wants to complete a line."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "demo": ("run", "See the whole story in a minute, in a scratch repository.", "unstuck demo --keep /tmp/cart"),
    "init": ("setup", "Write unstuck.toml for this repository.", "unstuck init --force"),
    "doctor": ("setup", "Say what is missing or left over, and what to do about it.", "unstuck doctor --json"),
    "plan": ("planning", "Read and check a plan; start nothing.", "unstuck plan specs/login"),
    "draft": (
        "planning",
        "Let an agent write a plan from a goal, a PRD or an issue.",
        "unstuck draft 'Add a --depth option to the walk'",
        "unstuck draft docs/prd.md --agent claude -o specs/depth/tasks.md",
        "gh issue view 12 | unstuck draft - --yes",
    ),
    "go": (
        "run",
        "Reach a goal: one task, no plan file.",
        "unstuck go 'Add a maxLength option'",
        "unstuck go 'Fix the crash on empty input' --check 'pytest tests/test_empty.py' --agent codex",
    ),
    "run": (
        "run",
        "Run a plan, or go on with its unfinished run.",
        "unstuck run specs/login --agent 'my-agent -p'",
        "unstuck run tasks.md --agent a --agent b --parallel 2 --max-time 8h",
    ),
    "resume": ("run", "Go on with the latest run, or the one named.", "unstuck resume --quiet"),
    "runs": ("look", "List all runs of this repository.", "unstuck runs"),
    "status": ("look", "Say where every task stands.", "unstuck status --watch"),
    "show": ("look", "Tell the story of one task.", "unstuck show 1.3"),
    "diff": ("look", "Show what a task's attempt changed.", "unstuck diff 1.3 2 --stat"),
    "log": ("look", "Print the journal.", "unstuck log -f"),
    "report": ("look", "Print what waits for a person.", "unstuck report --md > run.md"),
    "pr": ("look", "Make a pull request of what landed.", "unstuck pr --draft-file"),
    "explain": ("look", "Tell why a task went as it did.", "unstuck explain 1.3 --profile standard"),
    "replay": ("look", "Decide a run again under another profile.", "unstuck replay --profile standard"),
    "policy": ("look", "Print the profiles and their ladders.", "unstuck policy adaptive"),
    "agents": (
        "setup",
        "List the coding agents found; read a session; check one.",
        "unstuck agents",
        "unstuck agents read claude session.jsonl --exit-code 1 --json",
        "unstuck agents check codex",
    ),
    "verify": (
        "verify",
        "Run the checks and the tamper audit by hand.",
        "unstuck verify                 the commit at HEAD",
        "unstuck verify 1.3             the last work on task 1.3",
        "unstuck verify --sarif f.sarif",
    ),
    "diagnose": ("diagnose", "Say what a command's output means.", "make 2>&1 | unstuck diagnose --exit-code 2 --json"),
    "remedy": (
        "remedy",
        "Find a way out of a failed call, and try it.",
        "git clone URL 2>&1 | unstuck remedy --exit-code 127 --command 'git clone URL'",
        "unstuck remedy --tool read_file --arg file=config.yml --tools read_dir,read_file error.txt --json",
        "unstuck remedy error.txt --command 'curl -O URL' --run --allow caution",
    ),
    "experience": ("remedy", "Show what remedies and agents taught.", "unstuck experience --export lessons.json"),
    "install": (
        "faces",
        "Let a coding agent call us after every tool call.",
        "unstuck install claude --project --dry-run",
    ),
    "uninstall": ("faces", "Take that back.", "unstuck uninstall claude"),
    "hook": ("faces", "Answer an agent's hook.", "unstuck hook claude < event.json"),
    "board": ("faces", "Attach to a run from any terminal.", "unstuck board"),
    "ui": ("faces", "Serve runs as a live board in the browser.", "unstuck ui --open"),
    "mcp": ("faces", "Serve recovery as tools over MCP.", "unstuck mcp --workspace ."),
    "stop": ("operating", "Ask the running supervisor to stop.", "unstuck stop"),
    "retry": (
        "operating",
        "Give a task a fresh budget, with a hint.",
        "unstuck retry 1.3 --hint 'the fixture is in tests/old'",
    ),
    "answer": ("operating", "Answer what a stuck task asks.", "unstuck answer 1.3 'yes, drop the old table'"),
    "skip": ("operating", "Settle a task without doing it.", "unstuck skip 1.3 --because 'not worth it'"),
    "reset": ("operating", "Do a task again, even if it landed.", "unstuck reset 1.3"),
    "accept": ("operating", "Vouch for a task's work as it is.", "unstuck accept 1.3 --because 'the check is wrong'"),
    "approve": ("operating", "Let a held run go on, or work land.", "unstuck approve", "unstuck approve 1.3"),
    "rollback": ("operating", "Move the run's branch back.", "unstuck rollback 1.3", "unstuck rollback --to 1a2b3c4"),
    "undo": ("operating", "Take back what a command or a rollback did.", "unstuck undo 42"),
    "prune": ("operating", "Remove what is clean, merged and unused.", "unstuck prune --dry-run"),
    "worker": ("workers", "Do the work of runs, as a member of a fleet."),
    "fleet": ("workers", "Say which workers there are, and what they do."),
    "docs": ("reference", "Print a page of the documentation.", "unstuck docs configuration"),
    "config": ("reference", "Print every setting, and where it comes from.", "unstuck config limits"),
    "completion": ("reference", "Let your shell complete commands and options.", "unstuck completion zsh"),
    "bench": ("reference", "Run the benchmarks.", "unstuck bench parallel --seconds 2 --json"),
}
"""Each with its module, what it does, and how it is typed."""

SECTIONS = {
    "Start": ("demo", "init", "doctor", "agents", "draft", "plan"),
    "Run": ("go", "run", "resume", "stop"),
    "Look": ("status", "show", "diff", "log", "runs", "report", "pr", "explain", "board", "ui"),
    "Take part": ("answer", "retry", "skip", "accept", "approve", "reset", "rollback", "undo", "prune"),
    "By hand": ("verify", "diagnose", "remedy", "experience"),
    "Many machines": ("worker", "fleet"),
    "Read": ("docs", "config", "completion"),
}
"""The commands as people look for them; those that are not named here come last."""

PLAIN = {
    "✔": "+",
    "✘": "x",
    "↷": ">",
    "⊘": "-",
    "‖": "=",
    "▶": ">",
    "⚙": "*",
    "⏳": "~",
    "·": ".",
    "…": "...",
    "→": "->",
}
"""What stands for our signs on a terminal that does not know them."""

EXAMPLES = """
Examples:

\b
  unstuck demo                                     see it work, no key, no network
  unstuck go 'Add a maxLength option'              one task, checked by your own tests
  unstuck plan specs/login                         check a plan
  unstuck run specs/login --agent 'my-agent -p'    run it
  unstuck status                                   in another terminal
  unstuck retry 1.3 --hint 'use the old parser'    help a stuck task
  unstuck resume                                   go on
"""


run_option = click.option("--run", "run_id", metavar="RUN", help="The run; the latest one, if left out.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def say(text: object = "", *, err: bool = False) -> None:
    """Print text, the one way to the terminal; only our own colours reach the terminal as control characters."""
    click.echo(visible(str(text), colours=True), err=err)


class Commands(click.Group):
    """Commands by name; the module of one is loaded only to run it or to print its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, *examples = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"unstuck.cli.{module}"), cmd_name)
        if examples:
            listed = "".join(f"\n  {line}" for line in examples)
            command.epilog = f"Example{'s'[: len(examples) > 1]}:\n\n\b{listed}"
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete names without loading what they stand for."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # only when a shell asks

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=COMMANDS[name][1]) for name in COMMANDS if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        sorted_in = {name for names in SECTIONS.values() for name in names}
        others = tuple(name for name in COMMANDS if name not in sorted_in)
        for section, names in (*SECTIONS.items(), ("More", others)):
            if names:
                with formatter.section(section):
                    formatter.write_dl([(name, COMMANDS[name][1]) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is no such one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415  # only for a mistake

            near = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(
                f"There is no command {args[0]!r}."
                + (f" Did you mean {near[0]!r}?" if near else " See unstuck --help.")
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="unstuck")
def cli() -> None:
    """Run a plan through a coding agent, check every result, and recover from what goes wrong."""


def run_cli(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code; whatever goes wrong is told in words."""
    _print_anything()
    try:
        colour = False if os.environ.get("NO_COLOR") else None  # None: as the terminal can
        code = cli.main(list(arguments), prog_name="unstuck", standalone_mode=False, color=colour)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        usage = f"{error.ctx.get_usage()}\n" if error.ctx else ""
        say(f"{usage}Error: {error.format_message()}", err=True)
        return USAGE
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("Interrupted.", err=True)
        return INTERRUPTED
    except (
        BrokenPipeError,
        SystemExit,
    ):  # click exits by itself where a shell asked, or the reader of a pipe went away
        if COMPLETE in os.environ:
            return 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except UnstuckError as error:
        say(f"unstuck: {error.message}", err=True)
        if error.hint:
            say(f"Hint: {error.hint}", err=True)
        return error.exit_code
    except Exception:  # noqa: BLE001  # the last resort: a fault of ours is told as one
        import traceback  # noqa: PLC0415  # only for a fault of ours

        say(traceback.format_exc(), err=True)
        say(
            "unstuck: this is a fault of ours, not of your plan or agent; please report it with the lines above.",
            err=True,
        )
        say("Hint: everything recorded so far stands; go on with `unstuck resume`.", err=True)
        return 1


def _print_anything() -> None:
    """Let file names that are no text, and terminals without UTF-8, cost a character and never the message."""
    codecs.register_error("unstuck", _substitute)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="unstuck")


def _substitute(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(char: str) -> str:
    return PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode()
