"""Counts by label values. The core only counts: the Prometheus sink has the counts stored, and
shows them to scrapes (`collector/sinks/prometheus/durable_family.py`).
"""

from __future__ import annotations


class Counter:
    """A count by label values that only grows; exported as `pathgauge_<name>_total`."""

    __slots__ = ("_values", "documentation", "labels", "local", "name")

    def __init__(self, name: str, documentation: str, *labels: str, local: bool = False) -> None:
        """A `local` counter is counted by other threads than the pipeline's, is not stored, and
        starts at 0 in every process.
        """
        self.name = name
        self.documentation = documentation
        self.labels = labels
        self.local = local
        self._values: dict[tuple[str, ...], int] = {} if labels else {(): 0}

    def add(self, *values: str, n: int = 1) -> None:
        """Count `n` more under the label `values`, in the order of `labels`."""
        self._values[values] = self._values.get(values, 0) + n

    def get(self, *values: str) -> int:
        """The count under these label values; 0 if nothing was counted."""
        return self._values.get(values, 0)

    def total(self) -> int:
        """The sum over all label values."""
        return sum(self._values.values())

    def items(self) -> list[tuple[tuple[str, ...], int]]:
        """A copy of all counts, safe to read from another thread."""
        return list(self._values.items())

    def restore(self, values: tuple[str, ...], count: int) -> None:
        """Continue from the count that an earlier process stored."""
        self._values[values] = count


OTHER = "__other__"
"""The label value of what a limit leaves out."""
_MAX_BYTES = 64


class BoundedCounter(Counter):
    """A counter with one label whose values come from senders: the first `max_values` of them are
    counted, each cut to 64 bytes, and all others together as `__other__`.
    """

    __slots__ = ("_max_values",)

    def __init__(self, name: str, documentation: str, label: str, *, max_values: int) -> None:
        super().__init__(name, documentation, label)
        self._max_values = max_values

    def add(self, *values: str, n: int = 1) -> None:
        """Count `n` more under the label value, or under `__other__`."""
        (value,) = values
        printable = "".join(char if char.isprintable() else "?" for char in value[:_MAX_BYTES])
        key = (printable.encode("utf-8", "replace")[:_MAX_BYTES].decode("utf-8", "ignore"),)
        if key not in self._values and len(self._values) >= self._max_values:
            key = (OTHER,)
        super().add(*key, n=n)
