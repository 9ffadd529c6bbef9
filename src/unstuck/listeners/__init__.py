"""What is told to others as facts are recorded: messages for people, figures for files and for OpenTelemetry."""
