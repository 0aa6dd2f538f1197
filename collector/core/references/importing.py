"""Brings references of other formats together: what files hold comes in, references and an account
of each file go out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pathgauge.collector.core.references.formats import Read
from pathgauge.scorers.types import Reference


@dataclass(frozen=True, slots=True)
class Imported:
    """The references of all files."""

    references: tuple[Reference, ...]
    summary: tuple[str, ...]
    """What each file held, what was left aside, and what the operator should know, a line each."""


def gather(files: Mapping[str, Read], scenario_prefix: str = "") -> Imported:
    """The references of all files by name, with the prefix before every scenario id."""
    references = [entry.reference for read in files.values() for entry in read.entries]
    named = tuple(
        replace(reference, scenario_id=scenario_prefix + reference.scenario_id)
        for reference in references
    )
    return Imported(
        named, tuple(line for file, read in files.items() for line in _account(file, read))
    )


def _account(file: str, read: Read) -> Iterator[str]:
    references = [entry.reference for entry in read.entries]
    turns = [turn for reference in references for turn in reference.turns]
    calls = sum(len(turn.tool_calls or ()) for turn in turns)
    held = ", ".join(
        [_count(len(references), "scenario"), _count(len(turns), "turn"), _count(calls, "call")]
    )
    yield f"{file}: {held} ({', '.join(sorted(read.titles))})"
    if read.ignored:
        yield (
            f"{file}: ignored"
            f" {', '.join(f'{key} ({count})' for key, count in sorted(read.ignored.items()))}"
        )
    yield from (f"{file}: {note}" for note in read.notes)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
