"""Where `pathgauge results` reads: the store of a collector, or the API of a running one."""
