"""Reads traces of the past from trace files, Jaeger, Grafana Tempo and ClickHouse."""
