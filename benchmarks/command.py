"""The benchmarks as a table of commands: `unstuck bench` in a checkout, or `python -m benchmarks`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from benchmarks.report import Report

MISSED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One benchmark: the module here whose `measure` takes the options by name."""

    about: str
    options: tuple[click.Parameter, ...] = ()
    by_name_only: bool = False
    """Not run by a bare `unstuck bench`, for example because it needs a file."""


BENCHES: Mapping[str, Bench] = {
    "overhead": Bench(
        about="Our time per task, against by hand.",
        options=(
            click.Option(
                ["--tasks", "sizes"],
                type=click.IntRange(2),
                multiple=True,
                help="The length of a plan; may be repeated.  [default: 10, 100 and 1000]",
            ),
            click.Option(["--files"], type=click.IntRange(1), help="Files in the repository.  [default: 2000]"),
            click.Option(["--runs"], type=click.IntRange(1), help="Runs per length.  [default: 5 of 10 tasks, else 1]"),
        ),
    ),
    "slots": Bench(
        about="Slots made, used again and landed from, against linked worktrees.",
        options=(
            click.Option(["--files"], type=click.IntRange(1), help="Files in one repository.  [default: 50000]"),
            click.Option(["--commits"], type=click.IntRange(1), help="Commits in the other.  [default: 25000]"),
            click.Option(["--rounds"], type=click.IntRange(1), help="How often.  [default: 5]"),
        ),
    ),
    "classify": Bench(
        about="Our judgement of recorded outputs, against the predecessors' keywords.",
        options=(click.Argument(["file"], metavar="CASES.jsonl", type=click.Path(path_type=Path)),),
        by_name_only=True,
    ),
    "scan": Bench(
        about="How fast output is scanned.",
        options=(click.Option(["--megabytes"], type=click.IntRange(1), help="How much.  [default: 10]"),),
    ),
    "policy": Bench(
        about="Recorded trials, replayed under every profile.",
        options=(click.Argument(["file"], metavar="[TRIALS.csv]", required=False, type=click.Path(path_type=Path)),),
    ),
    "parallel": Bench(
        about="Phases side by side, against the ideal wall clock.",
        options=(
            click.Option(["--phases"], type=click.IntRange(1, 200), help="How many.  [default: 8]"),
            click.Option(["--seconds"], type=click.FloatRange(0.1), help="How long each takes.  [default: 5]"),
            click.Option(["--parallel"], type=click.IntRange(1, 64), help="How many at a time.  [default: 4]"),
        ),
    ),
    "kills": Bench(
        about="A supervisor killed at random moments of a long run: nobody is asked, nothing is done twice.",
        options=(
            click.Option(["--tasks"], type=click.IntRange(1, 200), help="Tasks in the plan.  [default: 60]"),
            click.Option(["--kills"], type=click.IntRange(1), help="How often.  [default: 100]"),
            click.Option(["--seed"], type=int, help="Draws the moments.  [default: 18]"),
            click.Option(["--seconds"], type=click.FloatRange(0.0), help="How long an agent works.  [default: 2.5]"),
        ),
        by_name_only=True,
    ),
    "fleet": Bench(
        about="A plan on workers, against as many threads; a long queue with idle workers.",
        options=(
            click.Option(
                ["--part", "parts"],
                type=click.Choice(["1", "2", "4", "queue"]),
                multiple=True,
                help="So many workers, or the queue alone; may be repeated.  [default: all]",
            ),
            click.Option(["--tasks"], type=click.IntRange(1, 700), help="Tasks in the plan.  [default: 200]"),
            click.Option(["--queued"], type=click.IntRange(4), help="Jobs in the queue.  [default: 1000]"),
            click.Option(["--idle"], type=click.IntRange(1, 100), help="Workers that wait for them.  [default: 50]"),
        ),
        by_name_only=True,
    ),
    "tasks": Bench(
        about="Reading and editing a long plan, against counting its lines.",
        options=(
            click.Option(["--tasks"], type=click.IntRange(1), help="Tasks in the plan.  [default: 5000]"),
            click.Option(["--repeats"], type=click.IntRange(1), help="How often.  [default: 7]"),
        ),
    ),
    "verification": Bench(
        about="Verification of one attempt under a slow gate, against the gate by hand.",
        options=(click.Option(["--seconds"], type=click.FloatRange(0.1), help="How slow it is.  [default: 10]"),),
    ),
    "tamper": Bench(
        about="Tests weakened in thirteen languages, and how many the audit catches.",
        options=(click.Option(["--files"], type=click.IntRange(1), help="Test files per language.  [default: all]"),),
    ),
    "remedies": Bench(
        about="Things broken for real in a box, and how many remedies heal.",
        options=(click.Option(["--repeats"], type=click.IntRange(1), help="Fresh processes to time.  [default: 5]"),),
    ),
    "hook": Bench(
        about="One event answered in a fresh process, against a bare interpreter; a session of ten thousand calls.",
        options=(
            click.Option(["--repeats"], type=click.IntRange(1), help="How often each.  [default: 40]"),
            click.Option(["--calls"], type=click.IntRange(2_000), help="Calls in one session.  [default: 10000]"),
        ),
    ),
    "ui": Bench(
        about="A run that many pages watch, against the same run unwatched.",
        options=(
            click.Option(["--clients"], type=click.IntRange(1, 500), help="How many pages.  [default: 50]"),
            click.Option(["--tasks"], type=click.IntRange(12), help="Tasks of the run.  [default: 48]"),
            click.Option(["--seconds"], type=click.FloatRange(0.0), help="How long an agent works.  [default: 0.4]"),
        ),
    ),
    "startup": Bench(
        about="Our start, against a bare interpreter.",
        options=(click.Option(["--repeats"], type=click.IntRange(1), help="How often.  [default: 30]"),),
    ),
}
"""All benchmarks. A new one is a row here and a module of its name."""


class Benches(click.Group):
    """The rows as commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(BENCHES)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name all benchmarks when there is no such one."""
        if args and args[0] not in BENCHES:
            ctx.fail(f"There is no benchmark {args[0]!r}. There are: {', '.join(BENCHES)}.")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = BENCHES.get(cmd_name)
        if row is None:
            return None

        def run(*, as_json: bool, **options: Any) -> int:
            report = _measured(cmd_name, options)
            if as_json or ctx.params.get("as_json"):
                click.echo(json.dumps({"schema": 1, "bench": cmd_name, **_object(report)}))
            else:
                click.echo(_text(report))
            return 0 if report.met else MISSED

        return click.Command(cmd_name, callback=run, params=[*row.options, _json_option()], help=row.about)


@click.group(cls=Benches, invoke_without_command=True, subcommand_metavar="[NAME]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def bench(context: click.Context, *, as_json: bool) -> int:
    """Run all benchmarks, or the one named. A missed target makes the exit code 1."""
    if context.invoked_subcommand is not None:
        return 0
    reports = {}
    for name, row in BENCHES.items():
        if not row.by_name_only:
            reports[name] = _measured(name, {})
            if not as_json:
                click.echo(f"{name}: {row.about}\n\n{_text(reports[name])}\n")
    met = all(report.met for report in reports.values())
    if as_json:
        objects = {name: _object(report) for name, report in reports.items()}
        click.echo(json.dumps({"schema": 1, "met": met, "benches": objects}))
    return 0 if met else MISSED


def _json_option() -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")


def _measured(name: str, options: Mapping[str, Any]) -> Report:
    """Run a benchmark with the options that were given; its own defaults stand for the rest."""
    given = {key: value for key, value in options.items() if value not in (None, ())}
    measure = import_module(f"benchmarks.{name}").measure
    report: Report = measure(**given, say=lambda text: click.echo(text, err=True))
    return report


def _object(report: Report) -> dict[str, Any]:
    targets = [{**asdict(target), "met": target.met} for target in report.targets]
    return {"met": report.met, **report.figures, "targets": targets}


def _text(report: Report) -> str:
    verdicts = [
        f"{'✔' if target.met else '✘'} {target.name}: {target.value:.2f} (at most {target.at_most:g})"
        for target in report.targets
    ]
    return "\n".join([*report.lines, *(["", *verdicts] if verdicts else [])])
