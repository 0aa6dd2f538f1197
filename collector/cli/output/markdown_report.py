"""Writes the result of a gate as Markdown, for the summary of a CI job or a comment on a change.

Texts come from telemetry: a name must not become a link, a mention or HTML. So each is escaped in
text, and code blocks have a fence that is longer than any in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from pathgauge.collector.cli.output.details import failures
from pathgauge.collector.cli.output.failing_runs import MAX_REASONS, RunView, runs, summary
from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.cli.output.printing import clean
from pathgauge.collector.core.evidence.comparison import Row, comparisons
from pathgauge.collector.offline.gate import Gate
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.matching.wording import counted, cut

MAX_FAILURES = 20
MAX_LINES = 200
"""Rows of the table."""
MAX_CELL = 300
MAX_PASSAGE = 2_000
MAX_CALLS = 60
MAX_BYTES = 900_000
"""GitHub refuses a summary of more than 1 MiB."""
_HEADINGS = ("agent", "scenario", "criterion", "score", "threshold", "judged", "verdict")
_SPECIAL = re.compile(
    r"[\\`*\[\]<>&|~$@#]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # between letters it is no emphasis
    r"|:(?=//)|(?<=www)\."  # addresses become links
    r"|^[-+=]|^\d{1,9}[.)](?=\s)"  # lists and headings
)
_REFERS = "@#"
_BREAK = "&#8203;"
"""A space of no width. GitHub looks for mentions and issues in the rendered text, where an escaped
`@` or `#` is an ordinary one.
"""
_FENCES = re.compile(r"`{3,}")


def to_markdown(replayed: Sequence[Replayed], gate: Gate) -> str:
    """The report: the table of the gate, and then the first failures."""
    failing = failures(replayed, gate)
    parts = ["\n".join(_gate(gate))]
    size = len(parts[0].encode("utf-8", "replace"))
    shown = 0
    for run in runs(islice(failing, MAX_FAILURES)):
        part = "\n".join(_run(run))
        size += len(part.encode("utf-8", "replace"))
        if size > MAX_BYTES:
            break
        parts.append(part)
        shown += 1
    if shown < len(failing):
        parts.append(f"And {len(failing) - shown} more; `--html` shows them.")
    text = "\n\n".join(parts)
    return text.encode("utf-8", "replace").decode() + "\n"


def _gate(gate: Gate) -> Iterator[str]:
    yield f"## pathgauge: {'passed' if gate.passed else 'not passed'}"
    yield ""
    for reason in gate.reasons[:MAX_REASONS]:
        yield f"- {_escaped(reason)}"
    if len(gate.reasons) > MAX_REASONS:
        yield f"- and {counted(len(gate.reasons) - MAX_REASONS, 'more reason')}"
    yield ""
    yield _table_row(_HEADINGS)
    yield _table_row(["---", "---", "---", "---:", "---:", "---:", "---"])
    rows = list(summary(gate))
    for row in rows[:MAX_LINES]:
        verdict = f"**{row.verdict}**" if row.verdict in ("failed", "error") else row.verdict
        note = f" ({_escaped(row.note)})" if row.note else ""
        cells = map(
            _escaped,
            (row.agent, row.scenario, row.criterion, row.score, row.threshold, row.judged),
        )
        yield _table_row([*cells, verdict + note])
    if len(rows) > MAX_LINES:
        yield ""
        yield f"And {counted(len(rows) - MAX_LINES, 'more line')}."


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _run(run: RunView) -> Iterator[str]:
    invocation = run.evidence.invocation
    title = " ".join(filter(None, (run.agent, run.scenario)))
    failure = f": {_escaped(run.failure)}" if run.failure else ""
    yield f"<details><summary>{verdict_text(run.verdict)} {_escaped(title)}{failure}</summary>"
    yield ""
    yield f"{_escaped(run.source)}, trace {_escaped(invocation.trace_id)}"
    for criterion in run.evidence.criteria:
        value = "" if criterion.value is None else f" {number(criterion.value)}"
        verdict = verdict_text(criterion.verdict)
        line = f"{_escaped(criterion.name)}{value} {verdict}: {_escaped(criterion.explanation)}"
        yield f"- {line}"
    for names, rows in comparisons(run.evidence):
        yield ""
        yield _escaped(", ".join(names))
        yield ""
        yield from _block("\n".join(_diff(rows)), "diff")
    for heading, text in run.passages:
        yield ""
        yield f"{heading}:"
        yield ""
        yield from _block(cut(text, MAX_PASSAGE))
    yield ""
    yield "</details>"


def _diff(rows: Sequence[Row]) -> Iterator[str]:
    """As a diff, in which renderers colour the lines."""
    for row in rows[:MAX_CALLS]:
        if row.mark == "=":
            yield f"  {_line(row.actual)}"
        if row.mark in ("~", "?", "-"):
            yield f"- {_line(row.expected)}"
        if row.mark in ("~", "?", "+"):
            yield f"+ {_line(row.actual)}"
    if len(rows) > MAX_CALLS:
        yield f"  and {len(rows) - MAX_CALLS} more"


def _line(text: str) -> str:
    return clean(cut(text, MAX_PASSAGE))


def _block(text: str, language: str = "") -> Iterator[str]:
    """A code block. Its fence is longer than any in the text, so nothing in it can end it."""
    longest = max(map(len, _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    yield f"{fence}{language}"
    yield from map(clean, text.splitlines())
    yield fence


def _escaped(text: str) -> str:
    """Text on one line in which nothing has a meaning."""
    return _SPECIAL.sub(_as_characters, clean(cut(text, MAX_CELL)))


def _as_characters(match: re.Match[str]) -> str:
    escaped = "".join(f"&#{ord(character)};" for character in match[0])
    return escaped + _BREAK if match[0] in _REFERS else escaped
