from unstuck.listeners.attempt_figures import MetricsFile as MetricsFile
from unstuck.listeners.notifying import Notifier as Notifier
from unstuck.listeners.otel import Telemetry as Telemetry
