"""`pathgauge lint`: checks references against traffic, and criteria against spoiled good runs."""
