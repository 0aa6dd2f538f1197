"""The order in which plug-ins that compete for the same input are asked."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pathgauge.collector.config.plugins.registry import PluginError, in_order


@dataclass(frozen=True)
class Plugin:
    before: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("before", "order"),
    [
        ({"a": (), "b": (), "c": ()}, "a b c"),
        ({"a": (), "b": ("a",), "c": ()}, "b a c"),
        ({"a": ("c",), "b": (), "c": ("b",)}, "a c b"),
        ({"a": (), "b": ("not installed",)}, "a b"),
        ({"z": (), "a": ()}, "z a"),
    ],
)
def test_a_plug_in_comes_before_those_that_it_names(
    before: dict[str, tuple[str, ...]], order: str
) -> None:
    plugins = {name: Plugin(names) for name, names in before.items()}
    assert list(in_order(plugins)) == order.split()


def test_plug_ins_that_are_before_each_other_are_refused() -> None:
    with pytest.raises(PluginError, match="plug-ins that are before each other: "):
        in_order({"a": Plugin(("b",)), "b": Plugin(("a",))})
