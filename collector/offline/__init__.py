"""The core without a service, over trace files: replay, gate, record, learn, lint, judge check."""
