"""Dictionaries and objects that distinguish unknown entries from missing ones.

Unknown entries must not count as zero or empty. So reading one raises `NotKnownError`, even with
`get` and a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from pathgauge.scorers.types import Reason


class NotKnownError(KeyError):
    """The entry `key` was read, but was not recorded or is not in the reference; see `reason`."""

    def __init__(self, key: str, reason: Reason) -> None:
        super().__init__(key)
        self.key, self.reason = key, reason


class Known(dict[str, Any]):
    """A dictionary that distinguishes unknown entries from missing ones."""

    def __init__(self, entries: Mapping[str, Any], unknown: Mapping[str, Reason]) -> None:
        """An entry is unknown if it is `None` or missing and has a reason in `unknown`."""
        super().__init__(entries)
        for key in unknown:
            if dict.get(self, key, unknown) is None:
                del self[key]
        self._unknown = unknown

    def __missing__(self, key: str) -> Any:
        if key in self._unknown:
            raise NotKnownError(key, self._unknown[key])
        raise KeyError(key)

    def __eq__(self, other: object) -> bool:
        """Unequal if known entries differ. Otherwise raises `NotKnownError` if an entry is unknown
        on one side only.
        """
        if not isinstance(other, dict):
            return False
        common = self.keys() & other.keys()
        if any(self[key] != other[key] for key in common):
            return False
        for one, keys in ((self, other.keys() - common), (other, self.keys() - common)):
            for key in keys:
                if not isinstance(one, Known) or key not in one._unknown:
                    return False
                raise NotKnownError(key, one._unknown[key])
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def get(self, key: str, default: Any = None) -> Any:
        """As `dict.get`, but raises `NotKnownError` for an unknown entry."""
        if key in self or key in self._unknown:
            return self[key]
        return default


class KnownAttributes(SimpleNamespace):
    """The entries of a `Known` as attributes."""

    def __init__(self, known: Known) -> None:
        super().__init__(**known)
        self._known = known

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            self._known.get(name)
        raise AttributeError(f"the context has no {name!r}")
