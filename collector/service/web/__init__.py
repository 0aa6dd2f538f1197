"""What the collector shows over HTTP: its metrics, its health, and where to find them."""
