"""The pathgauge collector: OTLP spans in, scored agent invocations out to Prometheus."""
