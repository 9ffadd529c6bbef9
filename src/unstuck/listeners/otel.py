"""Spans and metrics for OpenTelemetry, with its names for generative AI.

A run is a workflow, and an attempt is an invocation of an agent. No text is exported: only names, kinds, counts and times.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unstuck import __version__
from unstuck.journal.run_state import RunState
from unstuck.listeners.attempt_figures import Figures, finished
from unstuck.model.errors import Unavailable, with_extra
from unstuck.model.event import Entry, RunEnded, RunResumed, RunStarted

NAME = "unstuck"
NANOSECONDS = 1_000_000_000
FLUSH_MILLISECONDS = 10_000
PROVIDERS: Mapping[str, str] = {"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini", "copilot": "github"}
"""The provider of an agent that has only one. Other agents are reported by their own name."""
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
SECONDS = (1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 2400, 4800, 7200, 14400)
"""Bounds of buckets. They are wider than usual, because an agent works for minutes."""


@dataclass(slots=True, kw_only=True)
class Telemetry:
    """Exports a span for the run and for each attempt, and metrics of attempts."""

    endpoint: str
    _tracer: Any = None
    _providers: list[Any] = field(default_factory=list)
    _root: Any = None
    _instruments: dict[str, Any] = field(default_factory=dict)

    def open(self) -> "Telemetry":
        """Create the exporters, or raise Unavailable if the extra is not installed."""
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415  # an extra
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # as above
            from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415  # as above
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415  # as above
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # as above
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # as above
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # as above
        except ImportError as error:
            raise Unavailable(
                "otel.endpoint is set, and the extra for OpenTelemetry is not installed.",
                hint=f"{with_extra('otel')} Or take the setting out.",
            ) from error
        resource = Resource.create({"service.name": NAME, "service.version": __version__})
        base = os.path.expandvars(self.endpoint).rstrip("/")
        tracing = TracerProvider(resource=resource)
        tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{base}/v1/metrics"))
        metering = MeterProvider(resource=resource, metric_readers=[reader])
        self._providers = [tracing, metering]
        self._tracer = tracing.get_tracer(NAME, __version__)
        self._instruments = _instruments(metering.get_meter(NAME, __version__))
        return self

    def __call__(self, entry: Entry, state: RunState) -> None:
        event = entry.event
        if isinstance(event, RunStarted | RunResumed) and state.started is not None and self._root is None:
            names = {
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": state.started.plan,
                "unstuck.run": state.started.run,
                "unstuck.tasks": len(state.tasks),
            }
            self._root = self._tracer.start_span(
                f"invoke_workflow {state.started.plan}",
                context=_trace_of(state.started.run),
                attributes=names,
                start_time=_nanoseconds(entry.at),
            )
        elif (figures := finished(entry, state)) is not None:
            self._attempt(figures)
        elif isinstance(event, RunEnded) and self._root is not None:
            self._root.set_attribute("unstuck.exit_code", event.exit_code)
            self._root.end(end_time=_nanoseconds(entry.at))
            self._root = None

    def close(self) -> None:
        """Send what is not exported yet, then shut down."""
        if self._root is not None:
            self._root.end()
        for provider in self._providers:
            provider.force_flush(FLUSH_MILLISECONDS)
            provider.shutdown()

    def _attempt(self, figures: Figures) -> None:
        from opentelemetry import trace  # noqa: PLC0415  # an extra, loaded by now

        common = _shared_attributes(figures)
        span = self._tracer.start_span(
            f"invoke_agent {figures.agent}",
            context=trace.set_span_in_context(self._root) if self._root is not None else _trace_of(figures.run),
            kind=trace.SpanKind.CLIENT,
            attributes={**common, **_span_attributes(figures)},
            start_time=_nanoseconds(figures.began),
        )
        if figures.kind is not None:
            span.set_status(trace.StatusCode.ERROR)
        span.end(end_time=_nanoseconds(figures.ended))
        self._count(figures, common)

    def _count(self, figures: Figures, common: Mapping[str, str]) -> None:
        tokens = {"input": figures.input_tokens, "output": figures.output_tokens}
        for kind, count in tokens.items():
            if count is not None:
                self._instruments["tokens"].record(count, {**common, "gen_ai.token.type": kind})
        self._instruments["seconds"].record(figures.seconds, common)
        self._instruments["attempts"].add(1, {**common, "unstuck.decision": figures.decision})
        if figures.cost_usd is not None:
            self._instruments["cost"].add(figures.cost_usd, common)


def _instruments(meter: Any) -> dict[str, Any]:
    return {
        "tokens": meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of an attempt", explicit_bucket_boundaries_advisory=TOKENS
        ),
        "seconds": meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "Sessions of an attempt",
            explicit_bucket_boundaries_advisory=SECONDS,
        ),
        "attempts": meter.create_counter("unstuck.attempts", "{attempt}", "Attempts that ended, by what was decided"),
        "cost": meter.create_counter("unstuck.cost", "{USD}", "What attempts cost, as far as the agents say"),
    }


def _shared_attributes(figures: Figures) -> dict[str, str]:
    """Return the attributes that spans and metrics share."""
    provider = PROVIDERS.get(figures.agent, figures.agent.partition(":")[0].partition(" ")[0].rpartition("/")[2])
    names = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": provider,
        "gen_ai.agent.name": figures.agent.partition(" ")[0],
    }
    return names | ({"error.type": figures.kind} if figures.kind is not None else {})


def _span_attributes(figures: Figures) -> dict[str, Any]:
    """Return the attributes of a span that metrics do not have."""
    attributes = {
        "gen_ai.conversation.id": f"{figures.run}/{figures.task}/{figures.attempt}",
        "gen_ai.usage.input_tokens": figures.input_tokens,
        "gen_ai.usage.output_tokens": figures.output_tokens,
        "unstuck.run": figures.run,
        "unstuck.task": figures.task,
        "unstuck.attempt": figures.attempt,
        "unstuck.decision": figures.decision,
        "unstuck.verdict": figures.verdict,
        "unstuck.sessions": figures.sessions,
        "unstuck.cost_usd": figures.cost_usd,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _trace_of(run: str) -> Any:
    """Return the context of a run's trace. Its id follows from the run's name, so that a resumed run continues it."""
    from opentelemetry import trace  # noqa: PLC0415  # an extra, loaded by now

    digest = hashlib.sha256(run.encode()).digest()
    above = trace.SpanContext(
        trace_id=int.from_bytes(digest[:16]),
        span_id=int.from_bytes(digest[16:24]),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(above))


def _nanoseconds(at: float) -> int:
    return int(at * NANOSECONDS)
