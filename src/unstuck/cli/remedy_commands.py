"""Edge: `remedy` and `experience`: ways out of a failed call, filled in and run on request, and what they taught.

Loads no more than it needs: an agent may call it after every failing command.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unstuck.app.remedy_plan import NOTHING_FAILED, RemedyPlanner, judged, make_call, open_remedies, pattern_here
from unstuck.cli import say
from unstuck.cli.diagnose_command import Given, answers, evidence_options, opened, read_evidence, read_output
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.model.errors import BadUsage
from unstuck.model.text import counted, one_line
from unstuck.remedies.chain import RISKS, Risk, TaskType
from unstuck.remedies.recovery_plan import Plan, plan_json
from unstuck.remedies.situation import Call

if TYPE_CHECKING:
    from unstuck.remedies.performing import Walked


MARKS = {"worked": "✔", "failed": "✘", "not_run": "·"}


@click.command()
@evidence_options
@click.option(
    "--tools",
    metavar="A,B,C|FILE|JSON",
    help="The tools that the agent has, as names or with their schemas; ways that need others are left out.",
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="KEY=VALUE",
    help="An argument of the failed tool call; JSON where it is JSON.",
)
@click.option("--schema", "schema_text", metavar="FILE|JSON", help="The JSON schema of the tool's arguments.")
@click.option(
    "--task-type", type=click.Choice(["exploratory", "implementation"]), default=None, help="What the agent was about."
)
@click.option("--why", "why", is_flag=True, help="Say what led to it, cause by cause, as far as the evidence goes.")
@click.option("--run", "run_it", is_flag=True, help="Try the ways one after the other until one works.")
@click.option(
    "--allow", type=click.Choice(RISKS[1:]), help="With --run: how much risk may be taken.  [default: safe steps only]"
)
def remedy(
    *,
    file: str,
    given: Given,
    as_object: bool,
    jsonl: bool,
    tools: str | None,
    arguments: tuple[str, ...],
    schema_text: str | None,
    task_type: TaskType | None,
    why: bool,
    run_it: bool,
    allow: Risk | None,
) -> int:
    """Say what to do about a failed call, from its output in FILE or on standard input."""
    names = _tools(tools)
    planner = open_remedies(task_type=task_type or "")
    with opened(file) as stream:
        if jsonl:
            if run_it:
                raise BadUsage("--run takes one failure at a time.", hint="Leave out --jsonl.")
            for answer in answers(stream, lambda record: _answer(planner, record, names)):
                say(json.dumps(answer, ensure_ascii=False))
            return 0
        evidence = given.with_output(stream)
    call = make_call(evidence, tools=names, args=_arguments(arguments), schema=_schema(schema_text))
    found = judged(evidence, call)
    if found is None:
        say(json.dumps(NOTHING_FAILED) if as_object else "Nothing failed, so there is nothing to remedy.")
        return 0
    if why:
        return _whys(planner, found, call, as_object=as_object)
    plan = planner.plan(found, call, names)
    if run_it:
        return _run(planner, plan, found, allow, as_object=as_object)
    answer = {**plan_json(plan), "pattern": pattern_here(planner.cwd)}
    say(json.dumps(answer, ensure_ascii=False) if as_object else "\n".join(_told(answer)))
    return 0


# --- reading ------------------------------------------------------------------------------------------------------


def _answer(planner: RemedyPlanner, record: Mapping[str, Any], tools: Any) -> dict[str, Any]:
    evidence = read_evidence(record)
    args, names = record.get("args") or {}, record.get("tools", tools)
    if not isinstance(args, dict):
        raise TypeError("args is not an object")
    if names is not None and not isinstance(names, list | dict):
        raise TypeError("tools is not a list and not an object")
    call = make_call(evidence, tools=names, args=args, schema=record.get("schema"))
    found = judged(evidence, call)
    return plan_json(planner.plan(found, call, names)) if found is not None else NOTHING_FAILED


def _arguments(pairs: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BadUsage(f"{pair!r} is no argument.", hint="Write it as KEY=VALUE, e.g. --arg file=config.yml.")
        try:
            found[key] = json.loads(value)
        except (ValueError, RecursionError):
            found[key] = value
    return found


def _tools(text: str | None) -> Any:
    """Read the agent's tools: names between commas, or JSON with their schemas, in a file or as it is."""
    if text is None:
        return None
    if text.lstrip().startswith(("{", "[")) or text.endswith(".json"):
        given = _schema(text, "list of tools")
        given = given.get("tools", given) if isinstance(given, dict) else given
        if not isinstance(given, dict | list):
            raise BadUsage("The tools are no list and no object.", hint="Give names, name → schema, or definitions.")
        return given
    return [name.strip() for name in text.split(",") if name.strip()]


def _schema(text: str | None, what: str = "schema") -> Any:
    if text is None:
        return None
    try:
        content = text if text.lstrip().startswith(("{", "[", '"')) else Path(text).read_text(encoding="utf-8")
        return json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise BadUsage(f"The {what} cannot be read: {error}.", hint="Give a file, or the JSON itself.") from error


# --- running and telling --------------------------------------------------------------------------------------------


def _run(planner: RemedyPlanner, plan: Plan, found: Diagnosis, allow: Risk | None, *, as_object: bool) -> int:
    from unstuck.app.remedy_runs import practise, result_json

    walked, noted = practise(planner, plan, found, allow)
    question = plan.strategies[-1].steps[0].step.action
    if as_object:
        names = ("strategy", "result", "because", "steps")
        tried = [
            {**{name: getattr(one, name) for name in names}, "seconds": round(one.seconds, 3)} for one in walked.tried
        ]
        answer = {
            **plan_json(plan),
            "recovered": walked.recovered_by,
            "result": result_json(walked),
            "tried": tried,
        }
        say(json.dumps(answer, ensure_ascii=False))
    else:
        for one in walked.tried:
            took = f" ({counted(one.steps, 'step')}, {one.seconds:.1f} s)"
            say(f"{MARKS[one.result]} {one.strategy}{f': {one.because}' if one.because else took}")
        told = _handed_over(walked, plan) if walked.recovery else (f"Not recovered. {question}", *_left(walked, plan))
        say("\n".join(told))
    for sentence in noted:
        say(f"unstuck: {sentence}", err=True)
    return 0 if walked.recovered_by else 3


def _left(walked: "Walked", plan: Plan) -> Iterator[str]:
    """Tell the steps that nobody has done, for whoever goes on by hand."""
    not_run = {one.strategy for one in walked.tried if one.result == "not_run"}
    left = [way for way in plan_json(plan)["plans"] if way["strategy"] in not_run]
    yield from ["What is left to do by hand:"] * bool(left)
    for way in left:
        yield f"   {way['strategy']} ({way['risk']})"
        yield from _steps(way)


def _steps(way: Mapping[str, Any]) -> Iterator[str]:
    for step in way["steps"]:
        yield f"   - {step['action']}"
        several = len(step["args"]) > 1
        yield from (f"       {f'{name}: ' * several}{str(value)[:300]}" for name, value in step["args"].items())


def _handed_over(walked: "Walked", plan: Plan) -> Iterator[str]:
    """Tell what the recovered call left, so that nobody has to make it again, and what was changed for it."""
    done = walked.recovery
    assert done is not None
    yield f"Recovered by {done.strategy}."
    way = next(one for one in plan.strategies if one.strategy == done.strategy)
    yield from (f"Before: {one.step.action}" for one in way.steps if one.step.risk != "safe" and not one.step.again)
    for call in done.calls:
        said = next((str(value) for value in call.args.values()), "")
        shown = (
            one_line(said, 300)
            if call.tool == "run_bash"
            else f"{call.tool} {json.dumps(call.args, ensure_ascii=False)[:300]}"
        )
        yield f"Call: {shown}"
    served = f"; it listened on port {done.listens}, and was ended: start it where it is wanted" * bool(done.listens)
    yield f"Exit code: {done.exit_code if done.exit_code is not None else 'none'}{served}"
    if done.files:
        yield f"Files: {', '.join(one_line(name, 200) for name in done.files)}"
    if done.output.strip():
        yield "Output:"
        yield from (f"  {line.rstrip()[:500]}" for line in done.output.strip("\r\n").splitlines())


def _whys(planner: RemedyPlanner, found: Diagnosis, call: Call, *, as_object: bool) -> int:
    from unstuck.remedies import root_cause

    situation = planner.situation(found, call, None)
    causes, end = root_cause.causes(situation, found.evidence.exit_code)
    if as_object:
        rows = [{"cause": cause.says, "evidence": cause.evidence} for cause in causes]
        answer = {"schema": 1, "failed": True, "kind": str(found.kind), "whys": rows, "ends": end}
        say(json.dumps(answer, ensure_ascii=False))
        return 0
    for number, cause in enumerate(causes, 1):
        say(f"{number}. {cause.says}")
        say(f"   seen in: {cause.evidence}")
    say(f"Here the evidence ends: {end}")
    return 0


def _told(answer: Mapping[str, Any]) -> Iterator[str]:
    """Tell it to a person."""
    count = len(answer["plans"]) - 1
    told = f"{count} way{'s'[: count != 1]} out before asking a person" if count else "nothing but to ask a person"
    yield f"{answer['kind']}: {told}"
    for way in answer["plans"]:
        yield f"\n{way['priority']}. {way['strategy']} ({way['confidence']:.0%}, {way['risk']})"
        yield from _steps(way)
    yield from [""] * bool(answer["skipped"])
    for one in answer["skipped"]:
        yield f"Not {one['strategy']}: {one['because']}"
    if answer["pattern"]:
        yield f"\n{answer['pattern']['advice']} ({answer['pattern']['because']})"
    if count:
        yield "\nRun it: the same again with --run (safe steps only, unless --allow says more)"


@click.command()
@click.option("--json", "as_object", is_flag=True, help="Print one JSON object.")
@click.option("--export", "export_to", metavar="FILE|-", help="Write everything that was learned to a file.")
@click.option(
    "--import", "import_from", metavar="FILE|-", help="Take over what was learned elsewhere, in place of what is here."
)
@click.option("--reset", is_flag=True, help="Forget everything; a copy is kept beside it.")
@click.option("--report", "strategy", metavar="STRATEGY", help="Tell how a way went that you ran yourself.")
@click.option("--category", metavar="CATEGORY", default="", help="With --report: the category of the plan it is from.")
@click.option("--worked/--failed", "worked", default=None, help="With --report: whether the call succeeded then.")
@click.option("--tool", metavar="NAME", default="", help="With --report: the program or tool that was called.")
@click.option("--seconds", type=float, default=0.0, help="With --report: how long it took.")
@click.option("--cost", type=float, default=0.0, help="With --report: what it cost, in dollars.")
def experience(  # the options of one command
    *,
    as_object: bool,
    export_to: str | None,
    import_from: str | None,
    reset: bool,
    strategy: str | None,
    category: str,
    worked: bool | None,
    tool: str,
    seconds: float,
    cost: float,
) -> None:
    """Show what remedies and agents taught in this repository: tries, successes, and what follows from them."""
    from unstuck.app.experience_table import (
        experience_lines,
        experience_rows,
        export_experience,
        forget_experience,
        import_experience,
    )
    from unstuck.app.remedy_runs import report

    if sum(map(bool, (export_to, import_from, reset, strategy))) > 1:
        raise BadUsage("--export, --import, --reset and --report exclude one another.", hint="Give one of them.")
    cwd = Path.cwd()
    if strategy:
        if worked is None:
            raise BadUsage("Nobody said how it went.", hint="Add --worked or --failed.")
        report(category, strategy, worked=worked, tool=tool, seconds=seconds, cost=cost, cwd=cwd)
        say(f"Kept: {strategy} {'worked' if worked else 'failed'}.")
    elif export_to:
        export_experience(cwd, export_to, say)
    elif import_from:
        with opened(import_from) as stream:
            say(import_experience(cwd, read_output(stream).decode(errors="replace"), import_from))
    elif reset:
        say(forget_experience(cwd))
    else:
        table = experience_rows(cwd)
        say(json.dumps(table, ensure_ascii=False) if as_object else "\n".join(experience_lines(table)))
