"""Texts that try to make a judge say more than the truth: out they come, of many kinds, all or an
even sample of them.

They test a judge, with whatever model answers for it: appended to a bad answer, none of them should
make it a good one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain, zip_longest

import yaml

from pathgauge.scorers.types import Json


@dataclass(frozen=True, slots=True)
class Injection:
    """One text, to be put where an agent, its tools or its users can write."""

    name: str
    """Its kind and its number therein, such as `role_changes 3`."""
    kind: str
    text: str


@cache
def injections() -> tuple[Injection, ...]:
    """All of them, kind by kind."""
    kinds: dict[str, list[Json]] = yaml.safe_load(
        (files(__package__) / "injections.yaml").read_text(encoding="utf-8")
    )
    return tuple(
        Injection(f"{kind} {number}", kind, _text(written))
        for kind, texts in kinds.items()
        for number, written in enumerate(texts, 1)
    )


def sample(count: int) -> tuple[Injection, ...]:
    """`count` of them, or all where there are fewer; the same at every call, and of all kinds as
    evenly as can be.
    """
    kinds: dict[str, list[Injection]] = {}
    for injection in sorted(
        injections(), key=lambda injection: hashlib.sha256(injection.text.encode()).digest()
    ):
        kinds.setdefault(injection.kind, []).append(injection)
    turns: Iterable[tuple[Injection | None, ...]] = zip_longest(*kinds.values())
    return tuple(injection for injection in chain.from_iterable(turns) if injection is not None)[
        :count
    ]


def _text(written: Json) -> str:
    return (
        written
        if isinstance(written, str)
        else written["repeat"] * written["times"] + written["then"]
    )
