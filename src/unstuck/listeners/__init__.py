"""Tell others about recorded events: notifications, metrics, OpenTelemetry."""
