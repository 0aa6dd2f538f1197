"""The result of `pathgauge import`: the references of all files, and a summary of each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pathgauge.collector.core.references.formats import FileContents
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Reference


@dataclass(frozen=True, slots=True)
class Imported:
    """The references of all files."""

    references: tuple[Reference, ...]
    summary: tuple[str, ...]
    """Lines for the operator: what each file contained, what was ignored, and notes."""


def gather(files: Mapping[str, FileContents], scenario_prefix: str = "") -> Imported:
    """Combine the contents of files by name; every scenario id gets the prefix."""
    references = tuple(
        replace(entry.reference, scenario_id=scenario_prefix + entry.reference.scenario_id)
        for contents in files.values()
        for entry in contents.entries
    )
    summary = (line for file, contents in files.items() for line in _summary(file, contents))
    return Imported(references, tuple(summary))


def _summary(file: str, contents: FileContents) -> Iterator[str]:
    turns = [turn for entry in contents.entries for turn in entry.reference.turns]
    calls = sum(len(turn.tool_calls or ()) for turn in turns)
    counts = (
        counted(len(contents.entries), "scenario"),
        counted(len(turns), "turn"),
        counted(calls, "call"),
    )
    yield f"{file}: {', '.join(counts)} ({', '.join(sorted(contents.titles))})"
    if contents.ignored:
        ignored = (f"{key} ({count})" for key, count in sorted(contents.ignored.items()))
        yield f"{file}: ignored {', '.join(ignored)}"
    yield from (f"{file}: {note}" for note in contents.notes)
