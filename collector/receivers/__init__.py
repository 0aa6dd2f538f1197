"""The ways in: OTLP over gRPC and HTTP, and trace files."""
