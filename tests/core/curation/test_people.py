"""What people say of runs decides which runs a reference is learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pathgauge.collector.core.curation.grouping import BAD, Observed, grouped
from pathgauge.collector.core.curation.people import People
from pathgauge.collector.core.curation.proposal import Proposal, propose
from pathgauge.collector.core.curation.written import document
from pathgauge.collector.core.feedback.opinion import NOBODY, Opinion
from pathgauge.scorers.types import Invocation, ToolCall

GOOD_RUN, BAD_RUN, TIE = Opinion(good=1), Opinion(good=1, bad=2), Opinion(1, 1)


def runs(path: str, count: int, people: Opinion = NOBODY, *, first: int = 0) -> list[Observed]:
    """Runs that call these tools."""
    calls = tuple(ToolCall(tool, {}) for tool in path.split())
    return [
        Observed(
            Invocation(
                f"{first + number:032x}",
                "0" * 16,
                "genai",
                scenario_id="s",
                user_input="Where is it?",
                tool_calls=calls,
                final_response="Here.",
            ),
            people=people,
        )
        for number in range(count)
    ]


def tools(proposal: Proposal) -> str:
    calls = proposal.reference.turns[0].tool_calls or ()
    return " ".join(call.name + "?" * call.optional for call in calls)


def proposed(observed: Sequence[Observed]) -> Proposal:
    [group] = grouped(observed).groups
    found = propose(group)
    assert found is not None
    return found


def test_what_people_call_bad_is_not_learned_however_often_it_comes() -> None:
    usual = runs("a b c", 40)
    assert tools(proposed([*usual, *runs("a c", 20, first=40)])) == "a b? c"
    found = proposed([*usual, *runs("a c", 20, BAD_RUN, first=40)])
    assert tools(found) == "a b c"
    assert (found.runs, found.people) == (40, People(bad=20, bad_accepted=0))


def test_a_rare_way_that_people_call_good_is_no_mistake() -> None:
    usual = runs("a b c", 40)
    once = [*runs("a c", 1, GOOD_RUN, first=40), *runs("a c", 2, first=41)]
    assert tools(proposed([*usual, *once])) == "a b c"
    found = proposed([*usual, *runs("a c", 2, GOOD_RUN, first=40), *runs("a c", 1, first=42)])
    assert tools(found) == "a b? c"
    assert found.people == People(good=2, good_accepted=2, bad_accepted=0)


def test_people_know_better_than_criteria() -> None:
    def failed(some: list[Observed]) -> list[Observed]:
        return [one._replace(failed=True) for one in some]

    observed = [
        *runs("a", 5),
        *failed(runs("a", 4, GOOD_RUN, first=5)),
        *failed(runs("a", 3, BAD_RUN, first=9)),
        *failed(runs("a", 2, TIE, first=12)),
        *failed(runs("a", 1, first=14)),
    ]
    found = grouped(observed)
    assert found.left_out == {BAD: 3, "failed": 3}
    assert len(found.groups[0].turns[0]) == 9


def test_a_run_that_ended_with_an_error_is_no_example_whatever_people_say() -> None:
    [one] = runs("a", 1, GOOD_RUN)
    broken = one._replace(invocation=replace(one.invocation, error=True))
    assert grouped([broken]).left_out == {"failed": 1}


def test_runs_without_a_scenario_id_that_people_call_bad_belong_to_those_they_resemble() -> None:
    def nameless(some: list[Observed]) -> list[Observed]:
        return [one._replace(invocation=replace(one.invocation, scenario_id=None)) for one in some]

    other = nameless(runs("x y", 20, first=100))
    observed = nameless([*runs("a b", 30), *runs("a c", 3, BAD_RUN, first=30)]) + other
    groups = {
        group.turns[0][0].invocation.tool_calls[0].name: group for group in grouped(observed).groups
    }
    assert (len(groups["a"].bad), len(groups["x"].bad)) == (3, 0)


def test_what_people_call_bad_and_the_reference_accepts_is_named() -> None:
    observed = [*runs("a", 20, GOOD_RUN), *runs("a", 2, BAD_RUN, first=20)]
    found = proposed([*observed, *runs("b", 1, BAD_RUN, first=22)])
    assert found.people == People(good=20, good_accepted=20, bad=3, bad_accepted=2)
    assert (
        "# People call 20 runs good, of which it accepts 20, and 3 others bad, of which it"
        " accepts 2.\n"
    ) in document(found)
    assert "People" not in document(proposed(runs("a", 20)))


def test_a_turn_that_people_call_bad_leaves_no_whole_conversation() -> None:
    def talk(number: int, people: Opinion) -> list[Observed]:
        said = NOBODY, people
        return [
            one._replace(
                invocation=replace(one.invocation, conversation_id=f"talk {number}", start_ns=turn),
                people=said[turn],
            )
            for turn in range(2)
            for one in runs("a", 1, first=2 * number + turn)
        ]

    observed = [one for n in range(14) for one in talk(n, BAD_RUN if n < 2 else GOOD_RUN)]
    found = proposed(observed)
    assert (found.runs, found.people) == (12, People(good=12, good_accepted=12, bad=2))
    assert "and 2 others bad.\n" in document(found)
