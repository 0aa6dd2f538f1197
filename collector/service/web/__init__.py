"""The HTTP pages of the collector: metrics, health and open traces."""
