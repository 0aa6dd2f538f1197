"""Removes telemetry and results from the SQLite store, a few rows at a time, while requests arrive.

`choosing.py` finds the traces. They are written into the table `purging`, with a mark that says
what else is removed. From then on the purge is certain: whatever interrupts it, the next start goes
on. `requests.py` rewrites the journal, `rows.py` deletes everything else, trace by trace.
"""
