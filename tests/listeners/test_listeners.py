"""What a run tells others: people by commands and addresses, figures by a file and by OpenTelemetry; each cause once."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.project import LIMITS, Project

from unstuck.journal.run_state import RunState, fold
from unstuck.listeners.notifying import Notifier
from unstuck.model.action import Wait
from unstuck.model.config import NotifyConfig
from unstuck.model.event import Acted, AttemptStarted, Entry, Event, Options, RunStarted
from unstuck.model.plan import Task
from unstuck.process.processes import LocalProcesses


class Receiver(ThreadingHTTPServer):
    """A real receiver on loopback; it keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Desk)
        self.got: list[tuple[str, bytes]] = []

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Desk(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.got.append((self.path, self.rfile.read(int(self.headers.get("content-length") or 0))))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Print nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


def needs(module: str, extra: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install 'unstuck[{extra}]'")


def heard(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


STUCK_TWICE = (
    ("1.1", "Look; `touch bait`", ""),
    ("1.2", "Look again", ""),
    ("1.3", "Choose", "test -f c.txt"),
)


def test_a_cause_is_told_once_with_its_facts_and_its_text_never_reaches_the_command_line(project: Project) -> None:
    told = project.root.parent / "told"
    told.mkdir()
    keep = f'cat > {told}/$UNSTUCK_EVENT.$$.json; echo "$UNSTUCK_TITLE|$UNSTUCK_EXIT" >> {told}/titles'
    both = json.dumps([keep, "exit 4"])
    project.settings(f"{LIMITS}\n[notify]\nstuck = {json.dumps(keep)}\nasks = {json.dumps(keep)}\nended = {both}\n")
    project.plan(*STUCK_TWICE)
    project.script(
        _1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]], _1_3=[[{"print": "Which one should I use?"}]]
    )
    assert project.run().code == 3
    messages = heard(told)
    assert sorted(one["occasion"] for one in messages) == ["asks", "ended", "stuck"]
    assert "Which one should I use?" in next(one["text"] for one in messages if one["occasion"] == "asks")
    stuck = next(one for one in messages if one["occasion"] == "stuck")
    assert (stuck["schema"], stuck["tasks"], stuck["plan"]) == (1, ["1.1"], "tasks.md")
    assert "Nothing could check the work" in stuck["text"]
    assert (told / "titles").read_text().splitlines() == [
        "Task 1.1 is stuck: Look; `touch bait`|",
        "Task 1.3 asks: Choose|",
        "unstuck: 0 of 3 landed, 3 stuck (tasks.md)|3",
    ]
    assert not (project.root / "bait").exists()
    notes = [line for line in project.ask("log").out.splitlines() if "Nobody could be told (ended)" in line]
    assert len(notes) == 1
    assert "exit code 4" in notes[0]
    assert project.unstuck("resume").code == 3
    assert [one["occasion"] for one in heard(told)].count("stuck") == 1


AT = 1_800_000_000.0
HOUR = 3600.0


def waiting(*names: str) -> RunState:
    """Return a run in which an attempt of each task is under way."""
    tasks = tuple(Task(id=name, title=f"Task {name}") for name in names)
    options = Options(agents=("claude",))
    events: list[Event] = [
        RunStarted(run="r", plan="tasks.md", format="tasks.md", base="c", branch=None, options=options, tasks=tasks),
        *(AttemptStarted(task=name, attempt=1, agent="claude", base="c", slot=0) for name in names),
    ]
    return fold(Entry(seq, AT, event) for seq, event in enumerate(events, 1))


@pytest.mark.parametrize(("hours", "expected"), [(0.0, ["1.1"]), (4.0, ["1.1", "1.2"])], ids=["once", "again"])
def test_a_long_wait_is_told_once_or_again_after_hours(tmp_path: Path, hours: float, expected: list[str]) -> None:
    state, complaints = waiting("1.1", "1.2"), list[str]()
    command = f'echo "$UNSTUCK_TASK" >> {tmp_path}/told'
    notifier = Notifier(
        config=NotifyConfig(waiting=command, repeat_hours=hours), root=tmp_path, store=tmp_path / "store",
        processes=LocalProcesses(), report=complaints.append,
    )  # fmt: skip
    waits = [
        ("1.1", AT, AT + 2), ("1.1", AT, AT + 9 * HOUR), ("1.2", AT + HOUR, AT + 9 * HOUR),
        ("1.2", AT + 5 * HOUR, AT + 9 * HOUR),
    ]  # fmt: skip
    for seq, (task, at, until) in enumerate(waits, 10):
        notifier(Entry(seq, at, Acted(task=task, action=Wait(until=until, what="claude"))), state)
    notifier.close()
    assert (tmp_path / "told").read_text().split() == expected
    assert complaints == []


def test_an_address_of_apprise_is_told(project: Project, receiver: Receiver) -> None:
    needs("apprise", "notify")
    project.settings(f'{LIMITS}\n[notify]\nended = "$TELL_ME"\n')
    project.plan(("1.1", "Write a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.run(TELL_ME=f"json://{receiver.place}/hook").code == 0
    ((path, body),) = receiver.got
    assert path == "/hook"
    assert json.loads(body)["title"] == "unstuck: 1 of 1 landed (tasks.md)"


def test_every_attempt_is_a_line_of_figures_even_after_the_file_was_removed(project: Project) -> None:
    project.plan(("1.1", "Write a", "grep -q right a.txt"), ("1.2", "Ask", "test -f b.txt"))
    project.script(
        _1_1=[[{"write": "a.txt", "text": "wrong\n"}, {"cost": 0.25}], [{"write": "a.txt", "text": "right\n"}]],
        _1_2=[[{"write": "c.txt"}]],
    )
    assert project.run("--max-attempts", "2").code == 3
    path = project.home / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    first = lines[0]
    assert (first["task"], first["attempt"], first["kind"], first["decision"]) == ("1.1", 1, "check_failed", "retry")
    assert (first["cost_usd"], first["sessions"], first["verdict"]) == (0.25, 1, "fail")
    ends = [(line["task"], line["attempt"], line["decision"]) for line in lines]
    assert ends[1] == ("1.1", 2, "accept")
    assert ends[-1] == ("1.2", 2, "escalate")
    path.unlink()
    assert project.unstuck("resume").code == 3
    again = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["task"], line["attempt"], line["decision"]) for line in again[: len(ends)]] == ends


def test_spans_and_metrics_reach_a_collector_with_the_names_of_generative_ai(
    project: Project, receiver: Receiver
) -> None:
    needs("opentelemetry.exporter.otlp.proto.http", "otel")
    project.settings(f'{LIMITS}\n[otel]\nendpoint = "http://{receiver.place}"\n')
    project.plan(("1.1", "A secret title", "grep -q right a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}, {"cost": 0.5}], [{"write": "a.txt", "text": "right\n"}]])
    assert project.run(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1").code == 0
    spans, metrics = read_spans(receiver), read_metrics(receiver)
    names = [span.name for span in spans]
    assert (
        names == ["invoke_agent scripted", "invoke_agent scripted", "invoke_workflow tasks.md"]
        or sorted(names) == names
    )
    assert len({span.trace_id for span in spans}) == 1
    workflow = next(span for span in spans if span.name.startswith("invoke_workflow"))
    attempts = [span for span in spans if span is not workflow]
    assert {span.parent_span_id for span in attempts} == {workflow.span_id}
    failed = values(attempts[0])
    assert failed["gen_ai.operation.name"] == "invoke_agent"
    assert (failed["error.type"], failed["unstuck.decision"], failed["unstuck.cost_usd"]) == (
        "check_failed",
        "retry",
        0.5,
    )
    assert {"gen_ai.client.operation.duration", "unstuck.attempts", "unstuck.cost"} <= metrics
    assert all(b"secret title" not in body for _, body in receiver.got)


def read_spans(receiver: Receiver) -> list[Any]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415  # an extra

    found = []
    for path, body in receiver.got:
        if path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(unpacked(body))
            found += [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]
    return found


def read_metrics(receiver: Receiver) -> set[str]:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415  # an extra
        ExportMetricsServiceRequest,
    )

    found = set()
    for path, body in receiver.got:
        if path == "/v1/metrics":
            request = ExportMetricsServiceRequest.FromString(unpacked(body))
            found |= {
                one.name for part in request.resource_metrics for scope in part.scope_metrics for one in scope.metrics
            }
    return found


def unpacked(body: bytes) -> bytes:
    import gzip  # noqa: PLC0415  # only where a collector is asked

    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def values(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_what_nobody_asks_for_is_not_loaded(project: Project) -> None:
    loaded = project.root.parent / "loaded.txt"
    project.plan(("1.1", "Write a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    (project.root.parent / "sitecustomize.py").write_text(
        f"import atexit, sys\natexit.register(lambda: open({str(loaded)!r}, 'a').write(' '.join(sys.modules)))\n"
    )
    path = f"{project.root.parent}{os.pathsep}{os.environ['PYTHONPATH']}"
    with project.start("run", "tasks.md", "--agent", project.agent, PYTHONPATH=path) as process:
        process.communicate()
    assert process.returncode == 0
    names = set(loaded.read_text().split())
    assert "unstuck.listeners.attempt_figures" in names
    assert names.isdisjoint({"apprise", "opentelemetry", "unstuck.listeners.otel", "unstuck.listeners.notifying"})
