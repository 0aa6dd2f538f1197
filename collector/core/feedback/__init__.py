"""What people say of runs: read from telemetry, understood as verdicts, compared with criteria."""
