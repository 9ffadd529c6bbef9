"""Edge: The command line: a table of commands, each loaded when it is called; our errors become messages and exit codes."""

import codecs
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unstuck import __version__
from unstuck.cli.command_table import COMMANDS, SECTIONS
from unstuck.model.errors import NO_ROOM, UnstuckError, unwritable
from unstuck.model.text import visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

USAGE, INTERRUPTED, BROKEN_PIPE = 64, 130, 141
COMPLETE = "_UNSTUCK_COMPLETE"
"""Set by a shell that wants to complete a line."""
RUNNING = ("run", "go")
"""Commands that another one goes on with, once they have begun a run; every other is tried again itself."""
RESUME, STANDS = "`unstuck resume`", ": everything recorded so far stands"

PLAIN = dict(zip("✔✘↷⊘‖▶⚙⏳·", "+x>-=>*~.", strict=True)) | {"…": "...", "→": "->"}
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


def together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what adds several options to a command, in the order of its help."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def say(text: object = "", *, err: bool = False) -> None:
    """Print text, the one way to the terminal; only our own colours reach the terminal as control characters."""
    click.echo(visible(str(text), colours=True), err=err)


class Commands(click.Group):
    """Commands by name; the module of one is loaded only to run it or to print its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's signature
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(import_module(f"unstuck.cli.{entry.module}"), cmd_name)
        if entry.examples:
            heading = "Examples" if len(entry.examples) > 1 else "Example"
            lines = "".join(f"\n  {example}" for example in entry.examples)
            command.epilog = f"{heading}:\n\n\b{lines}"
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete names without loading what they stand for."""
        from click.shell_completion import CompletionItem  # only when a shell asks

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=entry.summary) for name, entry in COMMANDS.items() if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's signature
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(entry.name, entry.summary) for entry in entries])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is no such one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches  # only for a mistake

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
        return _told(error, arguments)
    except Exception as error:  # noqa: BLE001  # the last resort: a fault of ours is told as one
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return _told(unwritable(error.filename or "A file", error), arguments)
        import traceback  # only for a fault of ours

        say(traceback.format_exc(), err=True)
        say(
            "unstuck: this is a fault of ours, not of your plan or agent; please report it with the lines above.",
            err=True,
        )
        say("Hint: everything recorded so far stands; go on with `unstuck resume`.", err=True)
        return 1


def _told(error: UnstuckError, arguments: Sequence[str]) -> int:
    say(f"unstuck: {error.message}", err=True)
    if error.hint:
        say(f"Hint: {_fitting(error.hint, arguments[0] if arguments else '')}", err=True)
    return error.exit_code


def _fitting(hint: str, verb: str) -> str:
    """Return a hint that speaks of going on with a run for a command that has none: the command itself is the way on."""
    if RESUME not in hint or verb == "resume" or (verb in RUNNING and _is_begun()):
        return hint
    return hint.replace(STANDS, "").replace(RESUME, f"`unstuck {verb}`")


def _is_begun() -> bool:
    from unstuck.app.inspect import look  # only for a mistake

    try:
        ended = look(Path.cwd()).state.ended
    except (UnstuckError, OSError):
        return False
    return ended is None or ended.exit_code != 0


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
