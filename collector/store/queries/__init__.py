"""Read-only queries over results and evidence, for the API, the pages and the commands.

Each query opens the database, reads for a bounded time, and closes it again: a purge or a recovery
must not find a reader that never ends. Results are found newest first. A query that runs out of
time returns what it has found, and the place where the next one continues.
"""
