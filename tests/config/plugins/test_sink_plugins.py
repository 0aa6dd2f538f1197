"""Sinks of other packages: a section of `exporters` switches each one on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config.outgoing_certificates import outgoing_files
from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.collector.config.sinks import build_sinks, check_sinks
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from support.packages import install
from support.running import FREE_PORTS, QUICK, Collector, until
from support.turns import otlp, script, turn

ACME = """
import json
from dataclasses import dataclass
from pathgauge import SinkContext, SinkType


@dataclass(frozen=True)
class Options:
    path: str
    indent: int = 0


class Lines:
    def __init__(self, file):
        self.file = file

    def publish(self, evaluation, now):
        names = [result.criterion.name for result in evaluation.results]
        with self.file.open("a") as stream:
            stream.write(json.dumps(names) + "\\n")

    def publish_judged(self, judged, now): ...
    def publish_conversation(self, result, now): ...
    def withdraw(self, key): ...
    def close(self): ...


def build(options: Options, context: SinkContext) -> Lines:
    file = context.folder / options.path
    if not file.parent.is_dir():
        raise context.mistake(("path",), f"found {options.path!r}, expected an existing folder")
    return Lines(file)


LINES = SinkType(Options, build, check=build)
NOT_A_SINK = "lines"
"""

Load = Callable[[str], config.Config]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of Python with a package that adds the sink `lines`."""
    folder = tmp_path / "packages"
    install(folder, "sinks", lines="acme_sinks:LINES")
    (folder / "acme_sinks.py").write_text(ACME)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.delitem(sys.modules, "acme_sinks", raising=False)
    return folder


@pytest.fixture
def load(packages: Path, tmp_path: Path) -> Load:
    """Loads a configuration with this value of `exporters`."""

    def load(exporters: str) -> config.Config:
        file = tmp_path / "pathgauge.yaml"
        file.write_text(f"exporters: {exporters}\n")
        return config.load(file)

    return load


def test_a_section_builds_the_sink_with_its_options(load: Load, tmp_path: Path) -> None:
    settings = load("{lines: {path: out.jsonl}}")
    (name,), (sink,) = zip(*build_sinks(settings, InternalTelemetry()).items(), strict=True)
    assert (name, vars(sink)) == ("lines", {"file": tmp_path / "out.jsonl"})


def test_without_a_section_an_installed_sink_is_off(load: Load) -> None:
    assert build_sinks(load("{}"), InternalTelemetry()) == {}
    assert build_sinks(load("{lines: false}"), InternalTelemetry()) == {}


@pytest.mark.parametrize(
    ("exporters", "message"),
    [
        ("{line: {}}", "1:13: exporters.line: found an unknown key, expected one of prometheus,"),
        ("{lines: {}}", "1:20: exporters.lines.path: found nothing, expected this key"),
        (
            "{lines: {path: x, indnt: 1}}",
            "1:30: exporters.lines.indnt: found an unknown key, expected one of path, indent;"
            " did you mean 'indent'?",
        ),
        (
            "{lines: {path: x, indent: many}}",
            "1:38: exporters.lines.indent: found 'many', expected a whole number",
        ),
    ],
)
def test_a_mistake_in_the_section_is_reported_with_its_place(
    load: Load, exporters: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(exporters)
    assert message in str(caught.value)


def test_a_mistake_that_the_sink_finds_is_reported_with_its_place(load: Load) -> None:
    with pytest.raises(
        ConfigError, match=r"1:27: exporters\.lines\.path: found 'no/out', expected"
    ):
        check_sinks(load("{lines: {path: no/out}}"))


def test_an_entry_point_that_is_no_sink_is_refused_by_name(load: Load, packages: Path) -> None:
    install(packages, "sinks", other="acme_sinks:NOT_A_SINK")
    with pytest.raises(
        PluginError,
        match=r"the sink 'other' of the installed package acme: .* is no sink: found str",
    ):
        load("{}")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("def withdraw", "the sink 'lines' lacks the methods withdraw"),
        ("return Lines(file)", "the sink 'lines' cannot be built: ZeroDivisionError: "),
        ("file = context", "the sink 'lines' cannot be built: SystemExit: 0"),
    ],
)
def test_a_sink_that_cannot_be_used_is_refused_by_name(
    load: Load, packages: Path, changed: str, message: str
) -> None:
    replacement = {
        "def withdraw": "def other",
        "return Lines(file)": "1 / 0",
        "file = context": "raise SystemExit(0); file = context",
    }[changed]
    (packages / "acme_sinks.py").write_text(ACME.replace(changed, replacement))
    with pytest.raises(PluginError, match=message):
        build_sinks(load("{lines: {path: out.jsonl}}"), InternalTelemetry())


def test_a_sink_whose_check_fails_is_refused_by_name(load: Load, packages: Path) -> None:
    broken = ACME.replace("check=build", "check=lambda options, context: 1 / 0")
    (packages / "acme_sinks.py").write_text(broken)
    message = "the sink 'lines' cannot be checked: ZeroDivisionError: division by zero"
    with pytest.raises(PluginError, match=message):
        check_sinks(load("{lines: {path: out.jsonl}}"))


def test_a_sink_that_cannot_list_its_certificates_is_refused_by_name(
    load: Load, packages: Path
) -> None:
    broken = ACME.replace("check=build", "certificates=lambda options: 1 / 0")
    (packages / "acme_sinks.py").write_text(broken)
    message = "the sink 'lines' cannot be asked for its certificates: ZeroDivisionError"
    with pytest.raises(PluginError, match=message):
        list(outgoing_files(load("{lines: {path: out.jsonl}}")))


def test_a_sink_with_the_name_of_a_section_of_ours_is_refused(load: Load, packages: Path) -> None:
    install(packages, "sinks", prometheus="acme_sinks:LINES")
    with pytest.raises(PluginError, match="an installed sink is called 'prometheus'"):
        load("{}")


def test_options_that_pydantic_cannot_read_are_the_mistake_of_the_sink(
    load: Load, packages: Path
) -> None:
    broken = ACME.replace("@dataclass(frozen=True)\n", "")
    (packages / "acme_sinks.py").write_text(broken)
    with pytest.raises(PluginError, match="the options of the sink 'lines' cannot be read"):
        load("{}")


@pytest.mark.slow
def test_a_running_collector_publishes_to_the_sink(packages: Path, tmp_path: Path) -> None:
    exporters = {**FREE_PORTS["exporters"], "lines": {"path": "out"}}
    with Collector(
        tmp_path, assembly=QUICK, criteria={"failure": 0.5}, exporters=exporters
    ) as running:
        running.post("/v1/traces", otlp(turn(script("", "lookup"))))
        assert until((tmp_path / "out").exists)
    assert (tmp_path / "out").read_text() == '["failure"]\n'
