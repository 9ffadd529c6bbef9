"""Edge: `bench`: run the benchmarks of a checkout; they are no part of the installed package."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from unstuck.errors import Unavailable

CHECKOUT = Path(__file__).parents[3]


class Elsewhere(click.Group):
    """The benchmarks' own commands, found in the checkout that this package is run from."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names: list[str] = _benchmarks().Benches().list_commands(ctx)
        return names

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found: tuple[str | None, click.Command | None, list[str]] = _benchmarks().Benches().resolve_command(ctx, args)
        return found

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command | None = _benchmarks().Benches().get_command(ctx, cmd_name)
        return command


@click.group(cls=Elsewhere, invoke_without_command=True, subcommand_metavar="[NAME]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def bench(context: click.Context, *, as_json: bool) -> int:
    """Run all benchmarks, or the one named. A missed target makes the exit code 1."""
    if context.invoked_subcommand is not None:
        return 0
    code: int = _benchmarks().run_all(as_json=as_json)
    return code


def _benchmarks() -> ModuleType:
    if not (CHECKOUT / "benchmarks" / "command.py").is_file():
        raise Unavailable(
            "The benchmarks are not part of the installed package.",
            hint="Clone the repository, and run `make bench` there.",
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    return import_module("benchmarks.command")
