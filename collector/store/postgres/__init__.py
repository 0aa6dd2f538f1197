"""Results, and the state of scorers, in PostgreSQL, where several processes share them.

Each partition of the traces has one scorer at a time, see `partition.py`. What all scorers publish
is read by one gauge, see `gauge.py`. The statements that read and write results, evidence, turns
and counts are those of the SQLite store; `connection.py` and `statements.py` make them fit.
"""

from __future__ import annotations

from pathgauge.collector.store import StoreError


class FencedError(StoreError):
    """What this process holds in memory is no longer the state of the partition: another process
    has claimed it, or it is unknown whether the last commit took place. To be forgotten, and to be
    claimed again if the partition still belongs to this process.
    """


class LockLostError(StoreError):
    """This process is not the gauge any more, or never was."""
