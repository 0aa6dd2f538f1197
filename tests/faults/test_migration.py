"""A store on disk moves into a cluster while its senders wait: nothing is lost or counted twice."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from support import kafka, postgres

from .clusters import SERVE, Cluster
from .restarted import RestartedCollector
from .sender import Sender
from .traffic import Traffic
from .verdict import decreases, judge

pytestmark = pytest.mark.slow

MIGRATE = [*SERVE[:-1], "migrate"]
LOAD_S = 3.0
PATIENCE_S = 180.0


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 3])
def test_a_cluster_goes_on_where_a_store_was(tmp_path: Path, seed: int, workers: int) -> None:
    collector = RestartedCollector(tmp_path, workers=workers)
    sender = Sender(
        Traffic(seed, 0.2), collector.ports["grpc"], collector.ports["http"], pause=0.05
    )
    with kafka.running_broker() as broker, postgres.server() as database:
        cluster = Cluster(tmp_path, broker, database, ports=collector.ports)
        collector.start()
        try:
            sender.start()
            time.sleep(LOAD_S)
            before = collector.counts()
            collector.stop()
            config = str(cluster.gauges[0].config)
            move = [*MIGRATE, "--config", config, "--from", str(collector.store)]
            subprocess.run(move, check=True)
            again = subprocess.run(move, check=False, capture_output=True, text=True)
            assert (again.returncode, "found records in partition" in again.stderr) == (2, True)
            cluster.start()
            breaches = decreases(before, cluster.counts())
            time.sleep(LOAD_S)
            sender.finish()
            breaches += judge(cluster, sender.record, PATIENCE_S, several_scorers=True)
            assert breaches == []
        finally:
            sender.break_off()
            collector.stop()
            for member in cluster.members:
                member.stop()
