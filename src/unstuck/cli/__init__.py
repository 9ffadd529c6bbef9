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
from unstuck.cli.screen.saying import say
from unstuck.errors import UnstuckError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

USAGE, INTERRUPTED, BROKEN_PIPE = 64, 130, 141
COMPLETE = "_UNSTUCK_COMPLETE"
"""Set by a shell that wants to complete a line."""

COMMANDS = {
    "demo": ("run", "See the whole story in a minute, in a scratch repository."),
    "init": ("setup", "Write unstuck.toml for this repository."),
    "doctor": ("setup", "Say what is missing or left over, and what to do about it."),
    "plan": ("reading_plans", "Read and check a plan; start nothing."),
    "draft": ("draft", "Let an agent write a plan from a goal, a PRD or an issue."),
    "go": ("run", "Reach a goal: one task, no plan file."),
    "run": ("run", "Run a plan, or go on with its unfinished run."),
    "resume": ("run", "Go on with the latest run, or the one named."),
    "runs": ("look", "List all runs of this repository."),
    "status": ("look", "Say where every task stands."),
    "show": ("look", "Tell the story of one task."),
    "diff": ("look", "Show what a task's attempt changed."),
    "log": ("look", "Print the journal."),
    "report": ("explain", "Print what waits for a person."),
    "pr": ("explain", "Make a pull request of what landed."),
    "explain": ("explain", "Tell why a task went as it did."),
    "replay": ("explain", "Decide a run again under another profile."),
    "policy": ("explain", "Print the profiles and their ladders."),
    "agents": ("agents", "List the coding agents found; read a session; check one."),
    "verify": ("verify", "Run the checks and the tamper audit by hand."),
    "diagnose": ("diagnose", "Say what a command's output means."),
    "remedy": ("remedy", "Find a way out of a failed call, and try it."),
    "experience": ("remedy", "Show what remedies and agents taught."),
    "install": ("hooking", "Let a coding agent call us after every tool call."),
    "uninstall": ("hooking", "Take that back."),
    "hook": ("hooking", "Answer an agent's hook."),
    "board": ("faces", "Attach to a run from any terminal."),
    "ui": ("faces", "Serve runs as a live board in the browser."),
    "mcp": ("serving", "Serve recovery as tools over MCP."),
    "stop": ("operating", "Ask the running supervisor to stop."),
    "retry": ("operating", "Give a task a fresh budget, with a hint."),
    "answer": ("operating", "Answer what a stuck task asks."),
    "skip": ("operating", "Settle a task without doing it."),
    "reset": ("operating", "Do a task again, even if it landed."),
    "accept": ("operating", "Vouch for a task's work as it is."),
    "approve": ("operating", "Let a held run go on, or work land."),
    "rollback": ("operating", "Move the run's branch back."),
    "undo": ("operating", "Take back what a command or a rollback did."),
    "prune": ("operating", "Remove what is clean, merged and unused."),
    "worker": ("workers", "Do the work of runs, as a member of a fleet."),
    "fleet": ("workers", "Say which workers there are, and what they do."),
    "docs": ("reference", "Print a page of the documentation."),
    "config": ("reference", "Print every setting, and where it comes from."),
    "completion": ("reference", "Let your shell complete commands and options."),
    "bench": ("bench", "Run the benchmarks."),
}

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

EXAMPLE = {
    "demo": "unstuck demo --keep /tmp/cart",
    "init": "unstuck init --force",
    "doctor": "unstuck doctor --json",
    "resume": "unstuck resume --quiet",
    "runs": "unstuck runs",
    "status": "unstuck status --watch",
    "show": "unstuck show 1.3",
    "diff": "unstuck diff 1.3 2 --stat",
    "log": "unstuck log -f",
    "report": "unstuck report --md > run.md",
    "pr": "unstuck pr --draft-file",
    "replay": "unstuck replay --profile standard",
    "policy": "unstuck policy adaptive",
    "diagnose": "make 2>&1 | unstuck diagnose --exit-code 2 --json",
    "experience": "unstuck experience --export lessons.json",
    "install": "unstuck install claude --project --dry-run",
    "uninstall": "unstuck uninstall claude",
    "hook": "unstuck hook claude < event.json",
    "mcp": "unstuck mcp --workspace .",
    "board": "unstuck board",
    "ui": "unstuck ui --open",
    "stop": "unstuck stop",
    "skip": "unstuck skip 1.3 --because 'not worth it'",
    "reset": "unstuck reset 1.3",
    "accept": "unstuck accept 1.3 --because 'the check is wrong'",
    "undo": "unstuck undo 42",
    "prune": "unstuck prune --dry-run",
    "docs": "unstuck docs configuration",
    "config": "unstuck config limits",
    "completion": "unstuck completion zsh",
    "bench": "unstuck bench parallel --seconds 2 --json",
}
"""How a command is typed, for those whose own help does not say."""

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


class Commands(click.Group):
    """Commands by name; the module of one is loaded only to run it or to print its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"unstuck.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        if cmd_name in EXAMPLE:
            command.epilog = f"Example:\n\n\b\n  {EXAMPLE[cmd_name]}"
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
