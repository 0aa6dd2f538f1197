"""Writes a proposal as YAML in the native format, with its evidence as comments in front."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pathgauge.collector.core.curation.people import People
from pathgauge.collector.core.curation.proposal import LeftOut, Proposal
from pathgauge.collector.core.references.export_native import to_yaml
from pathgauge.scorers.matching.wording import counted, one_line

_MAX_LEFT_OUT = 10


def documents(texts: Iterable[str]) -> str:
    """Joins YAML documents."""
    return "---\n".join(texts)


def document(proposal: Proposal) -> str:
    """A proposal as one YAML document."""
    comments = "".join(f"# {_printable(line)}\n" for line in summary(proposal))
    return comments + to_yaml([proposal.reference])


def summary(proposal: Proposal) -> Iterator[str]:
    """What the proposal is based on, in lines."""
    others = proposal.runs - proposal.kept
    yield (
        f"Learned from {proposal.kept} of {counted(proposal.runs, 'run')}; accepts"
        f" {proposal.accepted} of them, and {others - proposal.rejected} of"
        f" {counted(others, 'other')}."
    )
    yield from said(proposal.people)
    for one in proposal.left_out[:_MAX_LEFT_OUT]:
        yield f"Left out: {_left_out(one)}"
    further = sum(one.runs for one in proposal.left_out[_MAX_LEFT_OUT:])
    if further:
        yield f"Left out: {further} more"
    yield from proposal.notes


def said(people: People) -> Iterator[str]:
    """What people say of the runs, in a line; nothing if they say nothing."""
    if not people.good and not people.bad:
        return
    good = f"{counted(people.good, 'run')} good, of which it accepts {people.good_accepted}"
    bad = f"{counted(people.bad, 'other')} bad"
    if people.bad_accepted is not None:
        bad += f", of which it accepts {people.bad_accepted}"
    yield f"People call {good}, and {bad}."


def _left_out(one: LeftOut) -> str:
    return f"{counted(one.runs, 'run')}, such as trace {one.traces[0]}: {one.why}"


def _printable(line: str) -> str:
    """A comment must stay on its line."""
    return "".join(one if one.isprintable() else "?" for one in one_line(line))
