"""Edge: Say what a command's output means. Loads no more than it needs: a hook may call it after every failing command."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import click

from unstuck.cli import say, together
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import as_json, guidance, open_rulebook
from unstuck.model.errors import BadUsage
from unstuck.model.failure import KINDS, Kind

HEAD, TAIL = 1 << 24, 3 << 24
"""Of a longer output its first 16 MB and its last 48 MB are read; what is left out is told."""
LONGEST_RECORD = 1 << 26
CLASSIFIERS = ("unstuck", "auto-claude", "forgekeeper", "seed-001", "seed-002")
"""Ours, and the predecessors' by their names or by the numbers of their documents."""


class Given(NamedTuple):
    """What is said about a failed command beside its output."""

    exit_code: int | None
    signal: str
    tool: str
    command: str
    timed_out: bool

    def with_output(self, stream: BinaryIO) -> Evidence:
        """Return it with the output that stands in a file."""
        text = read_output(stream).decode(errors="replace")
        return Evidence(stdout=text, **self._replace(signal=signal_name(self.signal))._asdict())


def evidence_options(command: Callable[..., Any]) -> Any:
    """Add what can be said about a failed command, as one value, for every command that asks about one."""

    @wraps(command)
    def asked(**values: Any) -> Any:
        given = Given(*(values.pop(name) for name in Given._fields))
        return command(given=given, **values)

    return together(
        click.argument("file", default="-", metavar="[FILE|-]"),
        click.option("--exit-code", type=int, help="The exit code of the command; without it the text alone decides."),
        click.option("--signal", default="", help="The signal that ended it, e.g. KILL or 9."),
        click.option("--tool", default="", help="The tool that ran it, e.g. run_bash."),
        click.option("--command", default="", help="The command line."),
        click.option("--timed-out", is_flag=True, help="Its time limit was reached."),
        click.option("--json", "as_object", is_flag=True, help="Print one JSON object."),
        click.option("--jsonl", is_flag=True, help="Read one JSON object per line, print one per line."),
    )(asked)


@click.command()
@evidence_options
@click.option(
    "--classifier",
    type=click.Choice(CLASSIFIERS),
    default="unstuck",
    metavar=f"[{'|'.join(CLASSIFIERS[:3])}]",
    help="Ours, or a predecessor's word for word.",
)
def diagnose(*, file: str, given: Given, as_object: bool, jsonl: bool, classifier: str) -> None:
    """Say what went wrong, from the output in FILE or on standard input."""
    with opened(file) as stream:
        if jsonl:
            for answer in answers(stream, lambda record: _judged(read_evidence(record), classifier)):
                say(json.dumps(answer, ensure_ascii=False))
            return
        evidence = given.with_output(stream)
    answer = _judged(evidence, classifier)
    say(json.dumps(answer, ensure_ascii=False) if as_object else "\n".join(_told(answer, classifier)))


# --- reading ------------------------------------------------------------------------------------------------


def opened(file: str) -> BinaryIO:
    if file == "-" and sys.stdin is None:
        raise BadUsage("Standard input is closed.", hint="Name a file, or pipe the output in.")
    if file == "-":
        if sys.stdin.isatty():
            say("Reading the output from this terminal; end it with Ctrl-D.", err=True)
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise BadUsage(
            f"{file} cannot be read: {error.strerror}.", hint="Name a file, or - for standard input."
        ) from error


def read_output(stream: BinaryIO) -> bytes:
    """Read an output of any length into bounded memory."""
    head, tail, left_out = stream.read(HEAD), b"", 0
    while chunk := stream.read(TAIL):
        tail += chunk
        left_out += max(0, len(tail) - TAIL)
        tail = tail[-TAIL:]
    if left_out:
        say(f"unstuck: {left_out} bytes in the middle were left out.", err=True)
    return b"\n".join((head, tail)) if left_out else head + tail


def answers(stream: BinaryIO, answer: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Answer one record per line; a bad one is answered as such and stops nothing."""
    while line := stream.readline(LONGEST_RECORD):
        if not line.strip():
            continue
        record: Any = None
        try:
            record = json.loads(line)
            yield {"id": record_id(record), **answer(record)}
        except (ValueError, TypeError, RecursionError, BadUsage) as error:
            yield {"id": record_id(record), "error": str(error)[:200] or type(error).__name__}


def record_id(record: Any) -> Any:
    return record.get("id") if isinstance(record, dict) else None


def read_evidence(record: Any) -> Evidence:
    if not isinstance(record, dict):
        raise TypeError("not an object")
    texts: dict[str, Any] = {key: record.get(key) or "" for key in ("stdout", "stderr", "tool", "command")}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise TypeError(f"{key} is not a string")
    code = record.get("exit_code")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
        raise TypeError("exit_code is not a whole number")
    signal = signal_name(str(record.get("signal") or ""))
    return Evidence(**texts, exit_code=code, signal=signal, timed_out=bool(record.get("timed_out")))


def signal_name(name: str) -> str:
    if not name.strip().isdigit():
        return name.strip().upper().removeprefix("SIG")
    import signal  # only for a number

    try:
        return signal.Signals(int(name)).name.removeprefix("SIG")
    except ValueError as error:
        raise BadUsage(f"There is no signal {name}.", hint="Name it, e.g. KILL, or give its number.") from error


# --- answering -----------------------------------------------------------------------------------------------


def _judged(evidence: Evidence, classifier: str) -> dict[str, Any]:
    if classifier == "unstuck":
        return as_json(open_rulebook().diagnose(evidence), evidence)
    from unstuck.compat.keyword_lists import auto_claude_type, forgekeeper_category  # only on request

    if classifier in {"auto-claude", "seed-002"}:
        return {"schema": 1, "failed": True, "type": auto_claude_type(f"{evidence.stdout}\n{evidence.stderr}")}
    category, confidence = forgekeeper_category(evidence)
    return {"schema": 1, "failed": True, "category": category, "confidence": round(confidence, 3)}


def _told(answer: dict[str, Any], classifier: str) -> Iterator[str]:
    """Tell it to a person."""
    if classifier != "unstuck":
        yield str(answer.get("type") or answer.get("category"))
        return
    if not answer["failed"]:
        yield "It did what it should: nothing failed."
        return
    kind = Kind(answer["kind"])
    yield f"{kind}: {KINDS[kind].means} ({answer['confidence']:.0%} sure)"
    if answer["message"]:
        yield f"  line {answer['line']}: {answer['message']}"
    for place in answer["where"][:3]:
        yield f"  at {place['file']}" + (f":{place['line']}" if place["line"] else "")
    for test in answer["tests"][:5]:
        yield f"  test {test}"
    if answer["resets_at"]:
        yield f"  resets at {answer['resets_at']}"
    again = "may be tried again" if answer["retryable"] else "trying again will not help"
    yield f"  blame: {answer['blame']}; {again}"
    words = (answer["type"], answer["category"] or "-", answer["phase_type"] or "-")
    yield "  in the predecessors' words: " + ", ".join(words)
    yield f"  {' '.join(guidance(kind).split())}"
