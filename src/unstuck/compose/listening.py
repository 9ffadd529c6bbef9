"""Edge: Put together who hears of a run's facts besides its watcher: the file of figures, people, OpenTelemetry."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from unstuck import listeners
from unstuck.config import Config
from unstuck.journal import Entry, RunState
from unstuck.line import Layout
from unstuck.process import LocalProcesses

Listener = Callable[[Entry, RunState], None]


@dataclass(slots=True)
class Complaints:
    """Takes what listeners could not do, as soon as the run has a journal to note it in."""

    note: Callable[[str], None] = field(default=lambda _text: None)

    def __call__(self, text: str) -> None:
        self.note(text)


@contextmanager
def listening(config: Config, layout: Layout, complaints: Complaints) -> Iterator[tuple[Listener, ...]]:
    """Return the listeners; at the end, what they still have to send is sent. What nobody asks for is not loaded."""
    found: list[Listener] = [listeners.MetricsFile(path=layout.home / "metrics.jsonl", told=complaints)]
    with ExitStack() as stack:
        wanted = config.notify
        if any((wanted.stuck, wanted.asks, wanted.waiting, wanted.ended)):
            notifier = listeners.Notifier(
                config=wanted, root=layout.root, store=layout.store, processes=LocalProcesses(), told=complaints
            )
            stack.callback(notifier.close)
            found.append(notifier)
        if config.otel.endpoint:
            telemetry = listeners.Telemetry(endpoint=config.otel.endpoint).open()
            stack.callback(telemetry.close)
            found.append(telemetry)
        yield tuple(found)
