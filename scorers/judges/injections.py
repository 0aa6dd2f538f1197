"""A corpus of prompt injections that try to make a judge give a better verdict.

They test a judge together with its model: appended to a bad answer, none of them should make the
verdict better.
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
    """A text to insert where an agent, its tools or its users can write."""

    name: str
    """Kind and number within the kind, such as `role_changes 3`."""
    kind: str
    text: str


@cache
def injections() -> tuple[Injection, ...]:
    """The whole corpus, grouped by kind."""
    kinds: dict[str, list[Json]] = yaml.safe_load(
        (files(__package__) / "injections.yaml").read_text(encoding="utf-8")
    )
    return tuple(
        Injection(f"{kind} {number}", kind, _text(written))
        for kind, texts in kinds.items()
        for number, written in enumerate(texts, 1)
    )


def sample(count: int) -> tuple[Injection, ...]:
    """Up to `count` injections, spread evenly over all kinds, and the same at every call."""
    kinds: dict[str, list[Injection]] = {}
    for injection in sorted(
        injections(), key=lambda injection: hashlib.sha256(injection.text.encode()).digest()
    ):
        kinds.setdefault(injection.kind, []).append(injection)
    rounds: Iterable[tuple[Injection | None, ...]] = zip_longest(*kinds.values())
    found = [injection for injection in chain.from_iterable(rounds) if injection is not None]
    return tuple(found[:count])


def _text(written: Json) -> str:
    if isinstance(written, str):
        return written
    return str(written["repeat"] * written["times"] + written["then"])
