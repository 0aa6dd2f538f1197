"""The pytest plug-in: the fixture `pathgauge_traces`, and the marker `pathgauge`, which runs a test
once for each scenario.

pytest imports this file in every run of an environment with pathgauge. So it imports nothing else
until a test uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

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
    except (ConfigError, _MarkerError) as error:
        # pytest itself only names the file of the test.
        pytest.fail(f"{metafunc.definition.nodeid}: {error}", pytrace=False)
    ids = [reference.scenario_id for reference in references]
    metafunc.parametrize(_ARGUMENT, references, ids=ids)


class _MarkerError(ValueError):
    """The marker is written wrong."""


def _patterns(marker: pytest.Mark, config: pytest.Config) -> list[str]:
    """The paths and patterns of the marker, below the rootdir. Raises `_MarkerError`."""
    unknown = [name for name in marker.kwargs if name != "references"]
    if unknown:
        raise _MarkerError(f"marker pathgauge: found {unknown[0]!r}, expected references")
    patterns = [*_each(marker.args), *_each((marker.kwargs.get("references", ()),))]
    if not patterns:
        raise _MarkerError(
            "marker pathgauge: found no file, expected such as references='references/*.yaml'"
        )
    return [str(config.rootpath / pattern) for pattern in patterns]


def _each(given: Iterable[Any]) -> Iterator[str | os.PathLike[str]]:
    """Paths and patterns, which are given alone or in lists. Raises `_MarkerError`."""
    for one in given:
        if isinstance(one, str | os.PathLike):
            yield one
        elif isinstance(one, Iterable):
            yield from _each(one)
        else:
            text = f"marker pathgauge: found {one!r}, expected paths or patterns of reference files"
            raise _MarkerError(text)


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
