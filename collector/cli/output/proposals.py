"""Shows proposals of references: the evidence for each step and argument, and as JSON."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console

from pathgauge.collector.cli.output.printing import print_text
from pathgauge.collector.core.curation.proposal import Fact, Proposal
from pathgauge.collector.core.curation.written import document, summary
from pathgauge.collector.core.references.export_native import scenario
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Json


def print_proposal(proposal: Proposal, out: Console) -> None:
    """Print the evidence, then the proposal."""
    print_text(out, f"Scenario {proposal.reference.scenario_id}", style="bold")
    for line in summary(proposal):
        print_text(out, line, indent=2)
    way = None
    for fact in proposal.facts:
        if fact.way != way:
            way = fact.way
            name = f"alternative {way}" if way else "expected_tools"
            print_text(out, f"Evidence for {name}, {counted(fact.of, 'run')}:", indent=2)
        print_text(out, _fact(fact), indent=4)
    print_text(out, "")
    for line in document(proposal).splitlines():
        if not line.startswith("#"):
            print_text(out, line)


def _fact(fact: Fact) -> str:
    text = f"{fact.part}: {fact.runs} of {fact.of}"
    return f"{text}, such as {', '.join(fact.examples)}" if fact.examples else text


def proposal_object(proposal: Proposal) -> dict[str, Json]:
    """A proposal as JSON."""
    return {
        "scenario_id": proposal.reference.scenario_id,
        "runs": proposal.runs,
        "kept": proposal.kept,
        "accepted": proposal.accepted,
        "rejected": proposal.rejected,
        "people": asdict(proposal.people),
        "left_out": [asdict(one) for one in proposal.left_out],
        "facts": [asdict(one) for one in proposal.facts],
        "notes": list(proposal.notes),
        "reference": scenario(proposal.reference),
        "yaml": document(proposal),
    }
