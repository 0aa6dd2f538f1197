"""Writes the result of a gate as JUnit XML, the report format that CI systems read.

A test case is one criterion for one agent and scenario. What is missing has test cases of its own,
so that CI systems show it: a criterion that scored too few invocations, a scenario that was not
run, and a gate that judged nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from xml.etree import ElementTree

from pathgauge.collector.offline.aggregates import AggregateLine
from pathgauge.collector.offline.coverage import counts
from pathgauge.collector.offline.gate import NOTHING_JUDGED, Gate
from pathgauge.collector.offline.gate_lines import Line

MAX_TRACES = 100
"""Trace ids listed in one test case."""

_ELEMENTS = {"failed": "failure", "error": "error", "not_evaluated": "skipped"}
_COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class _TestCase:
    classname: str
    name: str
    kind: str | None = None
    """`failure`, `error` or `skipped`; `None`: passed."""
    message: str = ""
    text: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None


def to_junit(gate: Gate) -> bytes:
    """The report of all lines and of everything that is missing."""
    cases = [*map(_line, gate.lines), *map(_aggregate, gate.aggregates), *_gaps(gate)]
    counted = {"tests": len(cases)} | {
        plural: sum(case.kind == kind for case in cases) for kind, plural in _COUNTS.items()
    }
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": "pathgauge",
            **{name: str(count) for name, count in counted.items()},
            "time": f"{_seconds(gate.lines):.3f}",
        },
    )
    _add_properties(suite, _suite_properties(gate))
    suite.extend(map(_element, cases))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))


def _seconds(lines: Iterable[Line]) -> float:
    """The seconds of all invocations, which several criteria scored."""
    longest: dict[tuple[str, str], float] = {}
    for line in lines:
        key = line.agent, line.scenario
        longest[key] = max(longest.get(key, 0.0), line.duration_s or 0.0)
    return math.fsum(longest.values())


def _suite_properties(gate: Gate) -> dict[str, str]:
    properties = {
        "passed": str(gate.passed).lower(),
        "min_coverage": f"{gate.requirements.min_coverage:g}",
        "scenarios_not_run": ", ".join(gate.not_run),
        "without_reference": counts(gate.unmatched),
    }
    return properties | {f"coverage.{one.criterion}": f"{one.share:.3g}" for one in gate.coverage}


def _line(line: Line) -> _TestCase:
    message = "; ".join(line.explanations)
    if line.verdict in ("failed", "error"):
        message = str(line)
    explained = {trace: text for trace, text in line.traces.items() if text}
    others = [text for text in line.explanations if text not in explained.values()]
    return _TestCase(
        f"{line.agent}.{line.scenario}".rstrip("."),
        line.criterion.name,
        _ELEMENTS.get(line.verdict),
        message,
        "\n".join([*(f"trace {trace}: {text}" for trace, text in explained.items()), *others]),
        dict(_line_properties(line)),
        line.duration_s,
    )


def _aggregate(line: AggregateLine) -> _TestCase:
    properties: dict[str, str] = {
        "over": line.aggregation.over,
        "aggregate": line.aggregation.measure,
    }
    if line.criterion.threshold is not None:
        properties["threshold"] = f"{line.criterion.threshold:.6g}"
    if line.aggregate is not None:
        one = line.aggregate
        properties |= {
            "score": f"{one.value:.6g}",
            "confidence_low": f"{one.low:.6g}",
            "confidence_high": f"{one.high:.6g}",
            "scored": str(one.samples),
        }
    message = str(line) if line.verdict == "failed" else ""
    kind = _ELEMENTS.get(line.verdict)
    return _TestCase(f"over {line.name}", line.criterion.name, kind, message, "", properties)


def _line_properties(line: Line) -> Iterator[tuple[str, str]]:
    for name, value in (("score", line.score), ("threshold", line.criterion.threshold)):
        if value is not None:
            yield name, f"{value:.6g}"
    yield "invocations", str(line.invocations)
    yield "scored", str(line.evaluated)
    if line.unscored:
        yield "not_scored", counts(line.unscored)
    yield "traces", _first(line.traces)


def _first(traces: Mapping[str, str]) -> str:
    text = ", ".join(islice(traces, MAX_TRACES))
    more = len(traces) - MAX_TRACES
    return f"{text} and {more} more" if more > 0 else text


def _gaps(gate: Gate) -> Iterable[_TestCase]:
    for one in gate.uncovered:
        message = gate.requirements.unmet(one)
        yield _TestCase("pathgauge.coverage", one.criterion, "failure", message)
    for scenario in gate.not_run:
        required = scenario in gate.missing
        yield _TestCase(
            "pathgauge.scenarios",
            scenario,
            "failure" if required else "skipped",
            "The required scenario was not run." if required else "The scenario was not run.",
        )
    for unread in gate.unread:
        file = unread.removeprefix("skipped ").split(": ")[0]
        message = f"{unread}; an invocation may be missing."
        yield _TestCase("pathgauge.traces", file, "error", message)
    if not gate.judged:
        yield _TestCase("pathgauge", "gate", "failure", NOTHING_JUDGED)


def _element(case: _TestCase) -> ElementTree.Element:
    attributes = {"classname": _clean(case.classname), "name": _clean(case.name)}
    if case.seconds is not None:
        attributes["time"] = f"{case.seconds:.3f}"
    element = ElementTree.Element("testcase", attributes)
    _add_properties(element, case.properties)
    if case.kind is not None:
        found = ElementTree.SubElement(element, case.kind, {"message": _clean(case.message)})
        found.text = _clean(case.text)
    return element


def _add_properties(element: ElementTree.Element, properties: Mapping[str, str]) -> None:
    given = {name: value for name, value in properties.items() if value}
    if given:
        group = ElementTree.SubElement(element, "properties")
        for name, value in given.items():
            ElementTree.SubElement(
                group, "property", {"name": _clean(name), "value": _clean(value)}
            )


def _clean(text: str) -> str:
    """Remove characters that XML cannot hold; telemetry may contain them."""
    return "".join(
        char
        for char in text
        if char in "\t\n\r"
        or " " <= char <= "\ud7ff"
        or "\ue000" <= char <= "\ufffd"
        or char > "\uffff"
    )
