"""The running process. It alone owns the clock, queues, threads and signals."""
