"""A list is a table on a terminal, and one line for each entry where it is followed."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from pathgauge.collector.api.models import UnmatchedScenario
from pathgauge.collector.cli.output.listing import Entry, Heading, Listing
from pathgauge.collector.cli.output.results import UNMATCHED_HEADINGS, unmatched_entry

SCENARIOS = [
    UnmatchedScenario(tenant="north", scenario_id="refnd", invocations=12, closest=["refund"]),
    UnmatchedScenario(tenant="", scenario_id="a\x1b[31mb", invocations=3, closest=[]),
]


def terminal(width: int = 80) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=True, width=width, color_system=None), file


def test_a_terminal_shows_a_table_with_some_of_the_columns() -> None:
    out, file = terminal()
    Listing(UNMATCHED_HEADINGS, "text", out).print(map(unmatched_entry, SCENARIOS))
    assert file.getvalue().splitlines() == [
        "scenario    invocations  closest known ids",
        "refnd                12  refund",
        "a\\x1b[31mb            3",
    ]


def test_a_narrow_terminal_shows_a_list() -> None:
    out, file = terminal(30)
    Listing(UNMATCHED_HEADINGS, "text", out).print(map(unmatched_entry, SCENARIOS[:1]))
    assert file.getvalue().splitlines() == [
        "refnd",
        "  invocations 12, closest",
        "    known ids refund",
    ]


def test_entries_that_come_one_by_one_have_a_line_each_on_a_terminal() -> None:
    out, file = terminal()
    listing = Listing(UNMATCHED_HEADINGS, "text", out)
    listing.print_headings()
    for scenario in SCENARIOS:
        listing.print_one(unmatched_entry(scenario))
    assert file.getvalue().splitlines() == ["refnd  12  refund", "a\\x1b[31mb  3"]


def test_a_number_is_not_a_formula_in_csv(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = terminal()
    headings = [Heading(name) for name in "abcd"]
    Listing(headings, "csv", out).print_one(Entry((-1.5, "-1.5", None, "a=b"), SCENARIOS[0]))
    assert capsys.readouterr().out == "-1.5,'-1.5,,a=b\n"
