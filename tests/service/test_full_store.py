"""A collector whose store is full of results says so, and recovers by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import resolve
from pathgauge.collector.config.operating import Store
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.references import Match
from pathgauge.collector.service import publisher
from pathgauge.collector.service.embedded import EmbeddedEngine
from pathgauge.collector.store import Progress
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.space import FULL
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation
from support.running import PATIENCE_S, until

MIB = 1 << 20
MAX_BYTES = 4 * MIB
BATCH = Batch(Origin("", "grpc", "traces", "protobuf"), b"", (span("one", "one"),))


def fill(folder: Path) -> None:
    """Store results of this minute that take more space than the store has."""
    fat = Evaluator((Criterion("x" * 10_000, Failure(), None),))
    store = SqliteStore(folder, Retention(max_bytes=64 * MIB))
    store.open()
    store.start(lambda _: True, lambda: 0.0)
    evaluations = [
        fat.evaluate(Invocation(trace_id(str(number)), str(number), "genai"), Match())
        for number in range(400)
    ]
    assert store.commit(Progress(0, 0.0, time.time(), evaluations))
    store.close()


Live = Callable[[], EmbeddedEngine]


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """Starts an engine, after stopping the last one."""
    monkeypatch.setattr(files, "WAL_PAGES", 20)
    monkeypatch.setattr(publisher, "RETRY_S", 0.1)
    engines: list[EmbeddedEngine] = []

    def live() -> EmbeddedEngine:
        end()
        store = Store(path=str(tmp_path)).model_copy(update={"max_bytes": MAX_BYTES})
        config = Config(store=store)
        engines.append(EmbeddedEngine(config, resolve(config), InternalTelemetry(), None))
        engines[-1].resume()
        return engines[-1]

    def end() -> None:
        for engine in engines:
            engine.finish(PATIENCE_S)

    yield live
    end()


def state(engine: EmbeddedEngine) -> str:
    """What `pathgauge_store_state` says."""
    [name] = [
        sample.labels["state"]
        for family in engine.registry.collect()
        for sample in family.samples
        if sample.name == "pathgauge_store_state" and sample.value
    ]
    return name


def accepts(engine: EmbeddedEngine) -> bool:
    return asyncio.run(engine.accept(BATCH))


def test_a_store_full_of_results_is_reported_and_has_space_again_without_a_restart(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(publisher, "IDLE_COMMIT_S", 10**9)
        patched.setattr(publisher, "RETRY_S", 10**9)  # nothing is committed
        engine = live()
        assert (engine.unready(), state(engine), accepts(engine)) == ([FULL], "full", False)
    assert until(lambda: accepts(engine))
    assert (engine.unready(), state(engine)) == ([], "ok")
    engine = live()
    assert (engine.unready(), state(engine), accepts(engine)) == ([], "ok", True)


def test_open_conversations_fit_into_their_share_of_a_small_store(tmp_path: Path) -> None:
    capacities = []
    for max_bytes in (64 * MIB, 10 << 30):
        config = Config(store=Store(path=str(tmp_path), max_bytes=max_bytes))
        engine = EmbeddedEngine(config, resolve(config), InternalTelemetry(), None)
        capacities += [
            sample.value
            for family in engine.registry.collect()
            for sample in family.samples
            if sample.name == "pathgauge_queue_capacity"
            and sample.labels == {"queue": "conversations"}
        ]
    assert capacities == [8 * MIB, 64 * MIB]


@pytest.mark.slow
def test_a_store_full_of_results_has_space_again_after_a_restart(
    live: Live, tmp_path: Path
) -> None:
    fill(tmp_path)
    engine = live()
    assert until(lambda: accepts(engine))
    assert until(lambda: state(engine) == "ok")
    [removed] = [
        sample.value
        for family in engine.registry.collect()
        for sample in family.samples
        if sample.name == "pathgauge_store_results_removed_total"
        and sample.labels == {"reason": "space"}
    ]
    assert 200 < removed < 400
