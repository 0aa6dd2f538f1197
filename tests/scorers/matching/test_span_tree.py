"""The tree of spans: parents, order, cycles, and the parts below some spans."""

from collections.abc import Sequence

from hypothesis import given, strategies as st

from pathgauge import SpanRecord
from pathgauge.scorers.matching.span_tree import SpanTree, below, without


def spans(*pairs: str) -> tuple[SpanRecord, ...]:
    """Spans from texts such as `ba`: the span b below a."""
    return tuple(SpanRecord(pair[0], pair[1:] or None) for pair in pairs)


def ids(some: Sequence[SpanRecord]) -> str:
    return "".join(span.span_id for span in some)


def test_spans_are_linked_with_their_parents() -> None:
    tree = SpanTree.of(spans("a", "ba", "ca", "db", "ex"))
    assert tree.parents == [None, 0, 0, 1, None]
    assert tree.children == [[1, 2], [3], [], [], []]
    assert tree.downwards == (0, 1, 3, 2, 4)


def test_a_parent_may_come_after_its_children() -> None:
    tree = SpanTree.of(spans("ba", "a"))
    assert (tree.parents, tree.downwards) == ([1, None], (1, 0))


def test_a_cycle_is_cut_at_its_first_span() -> None:
    tree = SpanTree.of(spans("ab", "ba", "ca", "xx"))
    assert tree.parents == [None, 0, 0, None]
    assert tree.children == [[1, 2], [], [], []]


def test_the_part_below_some_spans() -> None:
    some = spans("a", "ba", "ca", "db", "eb", "fc")
    assert ids(below(some, {"b"})) == "bde"
    assert ids(without(some, {"b"})) == "acf"
    assert ids(below(some, {"b", "f"})) == "bdef"
    assert ids(below(some, set())) == ""
    assert ids(without(some, {"unknown"})) == "abcdef"


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9)), max_size=9))
def test_whatever_the_parents_every_span_is_in_the_tree_once_and_below_its_parent(
    pairs: list[tuple[int, int]],
) -> None:
    tree = SpanTree.of([SpanRecord(str(own), str(parent)) for own, parent in pairs])
    assert sorted(tree.downwards) == list(range(len(pairs)))
    place = {at: number for number, at in enumerate(tree.downwards)}
    for at, parent in enumerate(tree.parents):
        assert parent is None or place[parent] < place[at]
        assert parent is None or at in tree.children[parent]
