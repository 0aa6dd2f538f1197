"""What kind of failure an invocation had; `failures.py` finds it."""

from __future__ import annotations

from dataclasses import dataclass

from pathgauge.collector.core.evidence.categories import Category


@dataclass(frozen=True, slots=True)
class Failure:
    """What kind of failure an invocation had."""

    category: Category
    signature: str
    """Which calls and which arguments, the same in every run that fails in this way: one line, at
    most 200 characters, with the names of tools and arguments and without their values.
    """
