"""The running process. The clock, queues, threads and signals are here and nowhere else."""
