"""Prints the results of `pathgauge score` on a terminal: the table of the gate, and its details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pathgauge.collector.cli.output.side_by_side import Mark, Row, rows
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Result
from pathgauge.collector.offline.gate import NOTHING_JUDGED, UNNAMED, Gate, Line
from pathgauge.collector.offline.replay import Replayed
from pathgauge.scorers.types import ExpectedCall

MAX_REASONS = 3
"""Explanations shown for one line, and reasons shown for invocations without a reference."""

_MARK_STYLES: dict[Mark, str] = {"=": "", "~": "yellow", "-": "red", "+": "red"}
_STYLES = {
    "passed": "green",
    "failed": "bold red",
    "error": "bold red",
    "not_evaluated": "yellow",
    "informational": "",
}


def print_gate(gate: Gate, out: Console) -> None:
    """Print the table of all lines."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    # Names are never cut, because people copy them.
    table.add_column("agent, scenario, criterion", no_wrap=True, overflow="ignore")
    for heading in ("score", "threshold", "judged"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    above = None
    for line in gate.lines:
        if (line.agent, line.scenario) != above:
            above = line.agent, line.scenario
            table.add_row(_text(f"{line.agent} {line.scenario}".rstrip()), style="bold")
        table.add_row(*_cells(line), style=_STYLES[line.verdict])
    if gate.lines:
        out.print(table)


def _cells(line: Line) -> tuple[str | Text, ...]:
    threshold = line.criterion.threshold
    judged = str(line.evaluated)
    if line.evaluated != line.invocations:
        judged = f"{judged} of {line.invocations}"
    return (
        _text(f"  {line.criterion.name}"),
        _score(line),
        "" if threshold is None else f"{threshold:.3f}",
        judged,
        line.verdict.replace("_", " "),
    )


def _score(line: Line) -> str:
    if line.score is None:
        return ""
    if line.deviation is None:
        return f"{line.score:.3f}"
    return f"{line.score:.3f} ±{line.deviation:.3f}"


def print_reasons(gate: Gate, replayed: Sequence[Replayed], err: Console) -> None:
    """Print why invocations had no reference, why lines failed, and whether nothing was judged."""
    unmatched = _unmatched(replayed)
    for reason, count in unmatched.most_common(MAX_REASONS):
        err.print(_text(f"{count} x no reference: {reason}"), soft_wrap=True)
    if len(unmatched) > MAX_REASONS:
        err.print(Text(f"and {len(unmatched) - MAX_REASONS} more scenarios without reference"))
    for line in gate.lines:
        if line.verdict in ("failed", "error", "not_evaluated"):
            _print_reasons(line, err)
    if not gate.judged:
        err.print(Text(NOTHING_JUDGED), soft_wrap=True)


def _print_reasons(line: Line, err: Console) -> None:
    err.print(_text(_headline(line)), soft_wrap=True)
    for explanation in line.explanations[:MAX_REASONS]:
        err.print(_text(f"    {explanation}"), soft_wrap=True)
    more = len(line.explanations) - MAX_REASONS
    if more > 0:
        err.print(Text(f"    and {more} more reasons: --json has them all"))


def _headline(line: Line) -> str:
    if line.verdict == "not_evaluated":  # has no score for `str(line)`
        return f"{line.criterion.name} for {line.agent} not evaluated [{line.scenario}]"
    return str(line)


def _unmatched(replayed: Iterable[Replayed]) -> Counter[str]:
    return Counter(
        _unmatched_reason(evaluation)
        for one in replayed
        for evaluation in one.evaluations
        if evaluation.match.unmatched
    )


def _unmatched_reason(evaluation: Evaluation) -> str:
    reason = (evaluation.match.unmatched or "").replace("_", " ")
    scenario = evaluation.invocation.scenario_id
    return f"{reason} {scenario!r}" if scenario else reason


def print_details(replayed: Iterable[Replayed], out: Console) -> None:
    """Print every invocation that has a reference or failed: the result of each criterion, and the
    two trajectories.
    """
    for one in replayed:
        for evaluation in one.evaluations:
            if evaluation.match.reference is not None or _failed(evaluation):
                _print_evaluation(evaluation, out)


def _failed(evaluation: Evaluation) -> bool:
    return any(result.verdict in ("failed", "error") for result in evaluation.results)


def _print_evaluation(evaluation: Evaluation, out: Console) -> None:
    invocation = evaluation.invocation
    names = [
        invocation.agent or UNNAMED,
        invocation.scenario_id or "",
        f"trace {invocation.trace_id}",
    ]
    out.print(_text(" ".join(filter(None, names))), style="bold", soft_wrap=True)
    for result in evaluation.results:
        value = "" if result.score.value is None else f" {result.score.value:.3f}"
        verdict = result.verdict.replace("_", " ")
        line = f"  {result.criterion.name}{value} {verdict}: {result.score.explanation}"
        out.print(_text(line), style=_STYLES[result.verdict], soft_wrap=True)
    for criteria, compared in _comparisons(evaluation).items():
        out.print(Padding(_side_by_side(criteria, compared), (0, 0, 0, 2), expand=False))
    out.print()


def _comparisons(evaluation: Evaluation) -> dict[str, list[Row]]:
    """The different comparisons, by the names of the criteria that made them."""
    found: dict[tuple[Row, ...], list[str]] = {}
    for result in evaluation.results:
        if "matched" in result.score.details:
            compared = rows(
                result.score.details,
                evaluation.invocation.tool_calls,
                _expected(evaluation, result),
            )
            found.setdefault(tuple(compared), []).append(result.criterion.name)
    return {", ".join(names): list(compared) for compared, names in found.items() if compared}


def _expected(evaluation: Evaluation, result: Result) -> tuple[ExpectedCall, ...]:
    turn = evaluation.match.turn
    if turn is None:
        return ()
    trajectories = (turn.tool_calls or (), *turn.alternatives)
    return trajectories[result.score.details.get("alternative", 0)]


def _side_by_side(criteria: str, compared: Iterable[Row]) -> Table:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, title=criteria, title_justify="left", title_style="dim"
    )
    table.add_column("expected", overflow="fold")
    table.add_column("", width=1)
    table.add_column("actual", overflow="fold")
    for row in compared:
        expected, actual = _text(row.expected), _text(row.actual)
        table.add_row(expected, row.mark, actual, style=_MARK_STYLES[row.mark])
    return table


def _text(text: str) -> Text:
    """Text without markup and control characters: telemetry must not control the terminal."""
    return Text("".join(char if char.isprintable() else repr(char)[1:-1] for char in text))
