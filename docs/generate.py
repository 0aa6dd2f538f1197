"""Generates the pages that follow from the code. `make docs` runs it, and a test compares.

docs/catalogue.md    every registered scorer with its options, grouped by package
docs/dialects.md     what is read of each instrumentation, counted in the captures of the tests
docs/scorers.md      between the markers: names known from other tools, from docs/known-names.yaml
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from pathgauge.collector.cli.output.scorer_catalogue import CatalogueEntry, Option, catalogue
from pathgauge.collector.config.plugins.scorers import SCORERS

DOCS = Path(__file__).parent
CAPTURES = DOCS.parent / "tests" / "golden" / "captures"
BEGIN, END = "<!-- names: begin -->\n", "<!-- names: end -->\n"

GROUPS = {
    "trajectories": "Trajectories: the tool calls beside those of the reference",
    "responses": "Responses: the final answer",
    "tool_use": "Tool use: what an agent did, checked by rules",
    "cost": "Cost: failures, tokens, calls and time",
    "sessions": "Sessions: all turns of a conversation together",
    "judges": "Judges: questions to a model",
    "composite": "Composite: several criteria as one",
}
"""The packages below `scorers`, in the order of the page."""


def catalogue_page() -> str:
    """The page of all scorers."""
    groups = {point.name: point.value.split(".")[2] for point in entry_points(group=SCORERS.group)}
    entries: dict[str, list[CatalogueEntry]] = {group: [] for group in GROUPS}
    for entry in catalogue():
        entries[groups[entry.name]].append(entry)
    lines = [
        "# The catalogue of scorers",
        "",
        (
            "What `pathgauge scorers` prints; this page is generated. [Scorers](scorers.md)"
            " explains what they have in common."
        ),
    ]
    for group, heading in GROUPS.items():
        lines += ["", f"## {heading}"]
        for entry in entries[group]:
            lines += ["", f"### {entry.name}", "", f"{kind(entry)}.  ", entry.summary]
            if entry.options:
                lines += ["", *map(option, entry.options)]
    return "\n".join(lines) + "\n"


def kind(entry: CatalogueEntry) -> str:
    """The range and direction of a scorer."""
    bounds = f"From {entry.low:g}" if math.isinf(entry.high) else f"{entry.low:g} to {entry.high:g}"
    better = "higher is better" if entry.higher_is_better else "lower is better"
    return ", ".join([bounds, better, *(["needs a reference"] if entry.needs_reference else [])])


def option(of: Option) -> str:
    """One option with its default."""
    default = " (required)" if of.required else f" = `{yaml_flow(of.default)}`"
    return (
        f"- `{of.name}`: {of.type.replace('|', 'or')}{default}{'. ' + of.text if of.text else ''}"
    )


def names_table() -> str:
    """The names known from elsewhere, a table for each document."""
    return (
        "\n".join(
            line
            for known in yaml.safe_load((DOCS / "known-names.yaml").read_text())
            for line in _names(known)
        )
        + "\n"
    )


def _names(known: Any) -> Iterator[str]:
    yield from ("", f"### {known['from']}", "", "| there | here, under `criteria` |", "|---|---|")
    for one in known["names"]:
        is_name = not {"`", " "} & set(one["name"])
        name = f"`{one['name']}`" if is_name else one["name"]
        yield (
            f"| {name} |"
            f" `{yaml_flow(one['criterion'])[1:-1]}`{': ' + one['note'] if 'note' in one else ''} |"
        )


def yaml_flow(value: Any) -> str:
    """A value on one line."""
    text = yaml.safe_dump(
        value, default_flow_style=True, width=math.inf, sort_keys=False, allow_unicode=True
    )
    return text.removesuffix("...\n").strip()


OF_INVOCATIONS = {
    "question": "user_input",
    "answer": "final_response",
    "agent": "agent",
    "version": "agent_version",
    "scenario": "scenario_id",
    "conversation": "conversation_id",
    "model": "model",
    "tokens": "input_tokens",
}
OF_CALLS = {"call ids": "id", "arguments": "arguments", "results": "result"}
"""Columns, and what they count."""

INCOMPLETE = ("content", "attrlimit", "redacted", "no-answer", "no-parts", "lost-root")
"""Captures, by their names, that lack something that the instrumentation can tell."""


def dialects_page() -> str:
    """The page of what is read of each instrumentation."""
    columns = [*OF_INVOCATIONS, "calls", *OF_CALLS, "failed calls"]
    lines = [
        "# What is read of each instrumentation",
        "",
        "Counted in the captures of `tests/golden/captures`, which are traces of the real",
        "frameworks; this page is generated. [Instrumenting](instrumenting.md) explains how to",
        "switch on what is missing, and what a framework can never tell.",
        "",
        "*all*: in every invocation, or in every tool call. *3 of 5*: in so many. *none*: in",
        "none of these captures. Some of their agents have no version, scenario or",
        "conversation. Answers and results are counted among the runs and calls that did not",
        "fail. *calls* is the number of tool calls, and *failed calls* the number of those that",
        "failed.",
        "",
        f"| capture | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for folder in sorted(CAPTURES.iterdir()):
        runs = [run for path in folder.glob("*/invocations.json") for run in _runs(path)]
        if runs:
            lines.append(f"| {folder.name} | {' | '.join(_cells(runs))} |")
    return "\n".join(lines) + "\n"


def _runs(path: Path) -> list[dict[str, Any]]:
    if any(word in path.parent.name for word in INCOMPLETE):
        return []
    runs: list[dict[str, Any]] = json.loads(path.read_text())
    return runs


def _cells(runs: list[dict[str, Any]]) -> Iterator[str]:
    for key in OF_INVOCATIONS.values():
        yield _share(key, [run for run in runs if key != "final_response" or not run["error"]])
    calls = [call for run in runs for call in run["tool_calls"]]
    yield str(len(calls))
    for key in OF_CALLS.values():
        yield _share(key, [call for call in calls if key != "result" or call["error"] is None])
    yield str(sum(call["error"] is not None for call in calls))


def _share(key: str, things: list[dict[str, Any]]) -> str:
    known = sum(thing[key] is not None for thing in things)
    if not known:
        return "none"
    return "all" if known == len(things) else f"{known} of {len(things)}"


def scorers_page() -> str:
    """The page about scorers, with its table of names made anew."""
    before, _, rest = (DOCS / "scorers.md").read_text().partition(BEGIN)
    return before + BEGIN + names_table() + END + rest.partition(END)[2]


def pages() -> dict[Path, str]:
    """Every page, with the text that it should have."""
    return {
        DOCS / "catalogue.md": catalogue_page(),
        DOCS / "dialects.md": dialects_page(),
        DOCS / "scorers.md": scorers_page(),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
