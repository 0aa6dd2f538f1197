"""Records that are read again."""

from __future__ import annotations

import pytest

from pathgauge.collector.receivers.kafka import LogError
from pathgauge.collector.receivers.kafka.records import RecordDecoder, Tenants
from pathgauge.collector.receivers.kafka.rereading import Rereader


def test_a_pipeline_that_reads_after_the_end_is_told() -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
    decoder = RecordDecoder({"spans": "traces"}, Tenants(frozenset({""}), ""), 8)
    gone: list[int] = []
    rereader = Rereader(settings, decoder, gone.append)
    rereader.close()
    with pytest.raises(LogError, match=r"^partition 7: its requests cannot be read any more$"):
        list(rereader.fetch(7, [("spans", 3)]))
    assert gone == []
