"""The pytest plug-in: the fixture `pathgauge_traces`, and the marker `pathgauge`, which runs a test
once for each scenario.

pytest imports this file in every run of an environment with pathgauge. So it imports nothing else
until a test uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathgauge.collector.testing.received_traces import ReceivedTraces
    from pathgauge.collector.testing.span_recorder import SpanRecorder

MARKER = (
    "pathgauge(references): run the test once for each scenario of these reference files, paths or"
    " patterns below the rootdir; the argument `scenario` is the pathgauge.Reference"
)
_ARGUMENT = "scenario"
_EXPORT_EVERY_MS = "200"
"""Of batching exporters, instead of 5 s, so that tests wait less."""
_MORE_SPECIFIC = (
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
)
"""Variables that would have precedence."""
_NO_PROXY = ("NO_PROXY", "no_proxy")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once for each scenario, with the scenario id in the name of the test."""
    marker = metafunc.definition.get_closest_marker("pathgauge")
    if marker is None or _ARGUMENT not in metafunc.fixturenames:
        return
    from pathgauge.collector.core.documents import ConfigError
    from pathgauge.collector.testing.read import read_references

    try:
        references = read_references(*_patterns(marker, metafunc.config))
    except ConfigError as error:
        pytest.fail(str(error), pytrace=False)
    ids = [reference.scenario_id for reference in references]
    metafunc.parametrize(_ARGUMENT, references, ids=ids)


def _patterns(marker: pytest.Mark, config: pytest.Config) -> list[str]:
    """The paths and patterns of the marker, below the rootdir."""
    patterns = marker.kwargs.get("references", ())
    if isinstance(patterns, str | os.PathLike):
        patterns = (patterns,)
    return [str(config.rootpath / pattern) for pattern in (*marker.args, *patterns)]


@pytest.fixture(scope="session")
def _pathgauge_recorder() -> Iterator[SpanRecorder]:
    from pathgauge.collector.testing.span_recorder import SpanRecorder

    with SpanRecorder() as recorder:
        yield recorder


@pytest.fixture(scope="session")
def pathgauge_endpoint(_pathgauge_recorder: SpanRecorder) -> str:
    """The address of the OTLP/HTTP receiver, for agents that are started once in a session."""
    return _pathgauge_recorder.endpoint


@pytest.fixture
def pathgauge_traces(
    _pathgauge_recorder: SpanRecorder, monkeypatch: pytest.MonkeyPatch
) -> ReceivedTraces:
    """Receives the spans of the agent under test. The standard variables of OpenTelemetry point to
    it while the test runs.
    """
    from pathgauge.collector.testing.received_traces import (
        TIMEOUT_S,
        ReceivedTraces,
    )

    for name in _MORE_SPECIFIC:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", _pathgauge_recorder.endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", _EXPORT_EVERY_MS)
    monkeypatch.setenv("OTEL_BLRP_SCHEDULE_DELAY", _EXPORT_EVERY_MS)
    for name in _NO_PROXY:
        hosts = filter(None, (os.environ.get(name), "127.0.0.1"))
        monkeypatch.setenv(name, ",".join(hosts))
    _pathgauge_recorder.flush(TIMEOUT_S)  # what an earlier test left behind is not of this one
    _pathgauge_recorder.clear()
    return ReceivedTraces(_pathgauge_recorder)
