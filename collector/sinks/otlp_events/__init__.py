"""Exports evaluations as `gen_ai.evaluation.result` events to an OTLP backend."""
