"""Authentication of senders and of readers of the metrics: tokens, tenants and certificates."""
