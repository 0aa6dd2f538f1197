"""Names as metrics have them: cut, so that labels stay short. The label of an alert must lead to
the results of the whole name.

Names that begin alike, such as those of parametrized tests or of cloud resources, must not become
one series: the mean would be that of all, and a threshold that of one. So a name that was cut ends
with a fingerprint of what the store keeps of it.
"""

from __future__ import annotations

from hashlib import blake2b

KEPT_CHARS = 200
"""The store keeps no more of a name, and a restart must find the same label."""
MAX_SCENARIO_BYTES = 128
"""Longer scenario ids, which come from references, are cut."""
MAX_NAME_BYTES = 64
"""Longer names of agents and versions, which come from senders, are cut."""
_MAX_CHARACTER_BYTES = 4
_DIGEST_BYTES = 4
_SEPARATOR = "~"
_ENDING = len(_SEPARATOR) + 2 * _DIGEST_BYTES
"""Size of what a name that was cut ends with."""


def label_value(value: str, max_bytes: int = MAX_SCENARIO_BYTES) -> str:
    """Cut to length. Lone surrogates are replaced: UTF-8 cannot encode them, and one would make the
    whole exposition fail.
    """
    kept = value[:KEPT_CHARS].encode("utf-8", "replace")
    if len(kept) <= max_bytes:
        return kept.decode()
    digest = blake2b(kept, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{_cut(kept, max_bytes - _ENDING)}{_SEPARATOR}{digest}"


def may_be_cut(value: str, max_bytes: int = MAX_SCENARIO_BYTES) -> bool:
    """Whether longer names can have this label."""
    size = len(value.encode("utf-8", "replace"))
    return max_bytes - _MAX_CHARACTER_BYTES < size <= max_bytes


def beginning(label: str) -> str:
    """What every name begins with that may have this label, which `may_be_cut`."""
    return label[:-_ENDING]


def has_label(name: str, wanted: str, max_bytes: int = MAX_SCENARIO_BYTES) -> bool:
    """Whether `wanted` is the name or its label. Labels of an earlier version, which links of old
    alerts have, had no fingerprint.
    """
    if name == wanted or not may_be_cut(wanted, max_bytes):
        return name == wanted
    before = _cut(name[:KEPT_CHARS].encode("utf-8", "replace"), max_bytes)
    return wanted in (label_value(name, max_bytes), before)


def _cut(name: bytes, max_bytes: int) -> str:
    return name[:max_bytes].decode("utf-8", "ignore")
