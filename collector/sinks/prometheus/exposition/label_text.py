"""The labels of many series as text.

A scrape of 10,000 scenarios writes the labels of half a million series. So the loops over series
run in C: the label values are turned into columns, escaped a column at a time, and filled into a
template that has the names in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pathgauge.collector.sinks.prometheus.exposition.text import escaped

_SPECIAL = ('"', "\\", "\n")


class LabelText:
    """Writes the labels of one family, sorted by name."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._templates: dict[int, tuple[list[int], str]] = {}
        """By number of label values: their order, and the text that they are filled into."""
        self._last: tuple[Sequence[tuple[str, ...]], list[str]] = (), []

    def of(self, series: Sequence[tuple[str, ...]]) -> Sequence[str]:
        """The labels of each series; there may be fewer values than names.

        Families with the same labels are written one after the other, so the last text is kept.
        """
        last = self._last
        if series != last[0]:
            last = self._last = series, self._written(series)
        return last[1]

    def _written(self, series: Sequence[tuple[str, ...]]) -> list[str]:
        texts: list[str] = []
        for size, alike in groupby(series, len):
            order, template = self._templates.get(size) or self._add_template(size)
            columns = [_escaped(column) for column in zip(*alike, strict=True)]
            if columns:
                texts += map(template.__mod__, zip(*(columns[at] for at in order), strict=True))
            else:
                texts.append("")
        return texts

    def _add_template(self, size: int) -> tuple[list[int], str]:
        order = sorted(range(size), key=self._names.__getitem__)
        template = ",".join(f'{self._names[at]}="%s"' for at in order)
        self._templates[size] = order, template
        return order, template


def _escaped(column: tuple[str, ...]) -> tuple[str, ...]:
    """Values of one label. Hardly any needs escapes, and all together are checked at once."""
    together = "".join(column)
    if any(map(together.__contains__, _SPECIAL)):
        return tuple(map(escaped, column))
    return column
