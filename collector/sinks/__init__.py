"""The built-in sinks. `pathgauge.collector.core.sink` says what a sink is."""
