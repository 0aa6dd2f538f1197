"""Writes the result of a gate as JUnit XML, the report format that CI systems read."""

from __future__ import annotations

from xml.etree import ElementTree

from pathgauge.collector.offline.gate import NOTHING_JUDGED, Gate, Line

_ELEMENTS = {"failed": "failure", "error": "error", "not_evaluated": "skipped"}
_COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def to_junit(gate: Gate) -> bytes:
    """One test case for each agent, scenario and criterion, and a failed one when nothing was
    judged.
    """
    cases = [_case(line) for line in gate.lines]
    if not gate.judged:
        cases.append(_test_case("pathgauge", "gate", "failure", NOTHING_JUDGED))
    counts = {"tests": len(cases)} | {
        plural: sum(case.find(kind) is not None for case in cases)
        for kind, plural in _COUNTS.items()
    }
    suite = ElementTree.Element(
        "testsuite", {"name": "pathgauge", **{name: str(count) for name, count in counts.items()}}
    )
    suite.extend(cases)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))


def _case(line: Line) -> ElementTree.Element:
    names = f"{line.agent}.{line.scenario}".rstrip(".")
    message = str(line) if line.verdict in ("failed", "error") else "; ".join(line.explanations)
    return _test_case(
        names,
        line.criterion.name,
        _ELEMENTS.get(line.verdict),
        message,
        "\n".join(line.explanations),
    )


def _test_case(
    names: str, name: str, kind: str | None, message: str, text: str = ""
) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": _clean(names), "name": _clean(name)})
    if kind is not None:
        ElementTree.SubElement(case, kind, {"message": _clean(message)}).text = _clean(text)
    return case


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
