"""References exported in the native format: readable, and equal when loaded again."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.documents import yaml_source
from pathgauge.collector.core.references import native
from pathgauge.collector.core.references.export_native import to_yaml
from pathgauge.scorers.matching.matchers import (
    AnyOrder,
    Anything,
    AtLeast,
    Ignored,
    Near,
    OneOf,
    Pattern,
)
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric
from support.examples import examples

AMBIGUOUS = (
    "NO|yes|null|~|12:30|2026-01-31|007|0o17|0x1F|1e5|1_000|.5|1.|+.inf|-|=|<<|? a|&a|!a|%a|@a|-"
    " a|a: b|a #b"
)
SCRAPS = ["a ", " b", "\t", "#", ": ", "\n", "'", '"', "é", "\u2028", "\x85", "\r", "🛫", "\x00"]
NAMES = (
    st.text(min_size=1, max_size=5)
    | st.sampled_from(AMBIGUOUS.split("|"))
    | st.sampled_from(SCRAPS)
)
TEXTS = NAMES | st.just("") | st.lists(st.sampled_from(SCRAPS), max_size=6).map("".join)
NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS | st.sampled_from(["$any", "$x"]), inner, max_size=3)
    ),
    max_leaves=4,
)
MATCHERS = st.one_of(
    st.just(Anything()),
    st.just(Ignored()),
    st.builds(Pattern, st.sampled_from(["a+", "[0-9]{3}: x", ""])),
    st.builds(Near, st.integers(0, 9), st.sampled_from([0.0, 0.5])),
    st.builds(AnyOrder, st.lists(VALUES, max_size=2)),
    st.builds(OneOf, st.lists(VALUES, min_size=1, max_size=2)),
    st.builds(AtLeast, st.dictionaries(st.text("ab"), VALUES, max_size=2)),
)
CALLS = st.builds(
    ExpectedCall,
    NAMES,
    st.none()
    | st.dictionaries(st.text("abc"), VALUES | MATCHERS, max_size=3)
    | st.dictionaries(TEXTS, VALUES, max_size=3),
    st.booleans(),
)


RUBRICS = st.builds(
    TurnRubric,
    NAMES,
    st.just("") | NAMES,
    st.just("") | NAMES,
    st.sampled_from(["response", "tool_use"]),
)


@st.composite
def trajectories(draw: st.DrawFn) -> tuple[ExpectedCall, ...]:
    """Calls with groups numbered from 0, as formats number them."""
    pieces = draw(st.lists(st.lists(CALLS, min_size=1, max_size=3), max_size=3))
    groups = {
        id(piece): group for group, piece in enumerate(piece for piece in pieces if len(piece) > 1)
    }
    return tuple(
        ExpectedCall(call.name, call.arguments, call.optional, groups.get(id(piece)))
        for piece in pieces
        for call in piece
    )


def turns(*, agents: bool = True) -> st.SearchStrategy[ReferenceTurn]:
    forbidden = CALLS.map(lambda call: ExpectedCall(call.name, call.arguments))
    said = {
        "user_input": st.none() | TEXTS,
        "response": st.none() | TEXTS,
        "forbidden": st.lists(forbidden, max_size=2).map(tuple),
        "response_contains": st.lists(NAMES, max_size=2).map(tuple),
        "expected_agent": st.none() | NAMES,
        "escalate": st.none() | st.booleans(),
        "rubrics": st.lists(RUBRICS, max_size=2).map(tuple),
        "agents": (
            st.dictionaries(TEXTS, turns(agents=False), max_size=2) if agents else st.just({})
        ),
    }
    without_tools = st.builds(ReferenceTurn, **said)
    return without_tools | st.builds(
        ReferenceTurn,
        tool_calls=trajectories(),
        alternatives=st.lists(trajectories(), max_size=2).map(tuple),
        **said,
    )


REFERENCES = st.builds(
    Reference,
    NAMES,
    st.lists(turns(), min_size=1, max_size=2).map(tuple),
    criteria=st.dictionaries(TEXTS, VALUES, max_size=2),
    expected_interval=st.none() | st.floats(0.001, 1e9),
    required=st.booleans(),
)


def load(text: str) -> list[Reference]:
    return [
        reference
        for document in yaml_source.read(text, "r.yaml")
        for _, reference in native.load(document).references
    ]


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(REFERENCES, min_size=1, max_size=2))
def test_exported_references_load_as_equal_references(references: list[Reference]) -> None:
    assert load(to_yaml(references)) == references


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(
        REFERENCES.map(lambda one: Reference(one.scenario_id, one.turns)), min_size=1, max_size=2
    )
)
def test_other_yaml_parsers_read_the_same(references: list[Reference]) -> None:
    text = to_yaml(references)
    assert yaml.safe_load(text) == yaml_source.read(text, "r.yaml")[0].data


def test_the_layout_is_readable() -> None:
    turn = ReferenceTurn(
        "My parcel is broken.\nWhat now?",
        (
            ExpectedCall("lookup"),
            ExpectedCall("get", {"city": "São Paulo", "from": "NO", "limit": Near(5, 0.5)}, True),
            ExpectedCall("a", {}, group=0),
            ExpectedCall("b", None, group=0),
            ExpectedCall(
                "write", {"text": "word " * 30, "options": {"draft": True, "to": ["x", "y"]}}
            ),
        ),
        "Yes: we pay.",
        alternatives=((ExpectedCall("lookup"), ExpectedCall("c", {"x": {"$y": 1}})), ()),
        forbidden=(ExpectedCall("drop"), ExpectedCall("send", {"to": Anything()})),
        response_contains=("pay", "- back"),
        expected_agent="billing",
        escalate=False,
        rubrics=(TurnRubric("It is kind."), TurnRubric("It is short.", "short", of="tool_use")),
        agents={"billing": ReferenceTurn(None, ())},
    )
    call = (
        "{name: get, args: {city: São Paulo, from: 'NO', limit: {$near: 5, abs: 0.5,"
        " rel: 1.0e-09}}, optional: true}"
    )
    assert (
        to_yaml([Reference("refund", (turn,), criteria={"latency": 5, "failure": False})])
        == """\
scenario: refund
input: |-
  My parcel is broken.
  What now?
expected_tools:
  - lookup
  - LONG_CALL
  - any_order:
      - {name: a, args: {}}
      - b
  - name: write
    args:
      text: 'WORDS
        word word word word word word word word '
      options: {draft: true, to: [x, y]}
expected_response: 'Yes: we pay.'
alternatives:
  - [lookup, {name: c, args: {x: {$literal: {$y: 1}}}}]
  - []
forbidden_tools:
  - drop
  - {name: send, args: {to: {$any: true}}}
response_contains: [pay, '- back']
expected_agent: billing
escalate: false
rubrics:
  - It is kind.
  - {text: It is short., id: short, of: tool_use}
agents:
  billing:
    expected_tools: []
criteria:
  latency: 5
  failure: false
""".replace("LONG_CALL", call).replace("WORDS", " ".join(["word"] * 22))
    )


def test_several_scenarios_are_a_list_with_blank_lines() -> None:
    two = [
        Reference("a", (ReferenceTurn("x"), ReferenceTurn("y", ()))),
        Reference("b", (ReferenceTurn(),)),
    ]
    assert (
        to_yaml(two)
        == """\
- scenario: a
  turns:
    - input: x
    - input: y
      expected_tools: []

- scenario: b
  turns:
    - {}
"""
    )


@pytest.mark.parametrize("depth", [30, 85])
def test_deep_arguments_are_written_in_linear_time(depth: int) -> None:
    value: Json = 1
    for _ in range(depth):
        value = {"a": value}
    reference = Reference("a", (ReferenceTurn(None, (ExpectedCall("t", value),)),))
    assert load(to_yaml([reference])) == [reference]
