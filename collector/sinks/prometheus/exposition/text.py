"""The text formats: what prometheus_client writes for the same samples, in a tenth of the time.

The two formats, plain text and OpenMetrics, differ in the names of counters in comments, and in
exemplars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

Form = Literal["text", "openmetrics"]

_NOT_FINITE = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def comments(name: str, kind: str, documentation: str, form: Form) -> str:
    """The two lines above a family."""
    text = documentation.replace("\\", r"\\").replace("\n", r"\n")
    if form == "openmetrics":
        text = text.replace('"', r"\"")
    elif kind == "counter":
        name = f"{name}_total"
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def escaped(value: str) -> str:
    """The value of a label."""
    return value.translate(_ESCAPES)


def label(name: str, value: str) -> str:
    """A label with its value."""
    return f'{name}="{escaped(value)}"'


def labels(names: Iterable[str], values: Iterable[str]) -> str:
    """Labels with their values, sorted; there may be fewer values than names."""
    return ",".join(sorted(map(label, names, values)))


def around(name: str, *, has_labels: bool) -> tuple[str, str]:
    """What stands before and behind the labels of a sample."""
    return (f"{name}{{", "} ") if has_labels else (name, " ")


def number(value: float) -> str:
    """A value."""
    return _NOT_FINITE.get(written := repr(float(value)), written)


def numbers(values: Collection[float]) -> list[str]:
    """Several values."""
    if all(map(math.isfinite, values)):
        return [*map(repr, map(float, values))]
    return [*map(number, values)]


class _Counts(dict[float, str]):
    """Most counts are small integers."""

    def __missing__(self, value: float) -> str:
        return number(value)


count: Callable[[float], str] = _Counts({n: number(n) for n in range(1000)}).__getitem__
"""The same as `number` in less time, for what is not negative."""


def around_exemplar(of: Mapping[str, str], at: float) -> tuple[str, str]:
    """What stands before and behind the value of an exemplar, which follows a sample; `at` is its
    Unix time.
    """
    return f" # {{{labels(of, of.values())}}} ", f" {at!r}"


def line(start: str, end: str) -> list[str]:
    """A line in pieces, without its labels and its number, and the end of the line before it."""
    return [f"\n{start}", "", end, ""]


def filled(lines: Sequence[str], labels: Sequence[str], numbers: Iterable[str]) -> list[str]:
    """Lines in pieces, with their labels and numbers."""
    pieces = [*lines]
    pieces[1::4] = labels
    pieces[3::4] = numbers
    return pieces


def joined(pieces: Iterable[str]) -> bytes:
    """Lines as text."""
    written = "".join(pieces)
    return f"{written[1:]}\n".encode() if written else b""


def samples(name: str, labels: Sequence[str], numbers: Iterable[str]) -> bytes:
    """Samples of one name, which all have labels or none: the labels as text, and the numbers."""
    lines = line(*around(name, has_labels=any(labels))) * len(labels)
    return joined(filled(lines, labels, numbers))


def upper_bounds(bounds: Sequence[float]) -> list[str]:
    """The values of the label `le`, of which the last one is +Inf."""
    return [*(repr(float(bound)) for bound in bounds), "+Inf"]
