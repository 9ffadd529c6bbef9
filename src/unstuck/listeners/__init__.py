"""What is told to others as facts are recorded: messages for people, figures for files and for OpenTelemetry."""

from unstuck.doors import door

__getattr__ = door(__name__)
