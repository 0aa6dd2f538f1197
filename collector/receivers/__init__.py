"""The receivers: OTLP over gRPC and HTTP."""
