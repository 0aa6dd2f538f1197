"""Where commands read stored results: the store of a collector, or the API of a running one."""
