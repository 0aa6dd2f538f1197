"""Invocations as JSON, with their content: for judges, and for other scorers."""

from __future__ import annotations

import json

from pathgauge.collector.core.documents.adapters import adapter
from pathgauge.collector.core.documents.later_versions import read_known
from pathgauge.scorers.types import Invocation


def to_json(invocation: Invocation) -> bytes:
    """The invocation as JSON on one line."""
    try:
        return adapter(Invocation).dump_json(invocation)
    except ValueError:  # lone surrogates, which have no UTF-8 form
        plain = adapter(Invocation).dump_python(invocation)
        return json.dumps(plain, ensure_ascii=False, default=list).encode("utf-8", "replace")


def from_json(body: bytes | str) -> Invocation:
    """The invocation, without flags that only a later version knows. Raises `ValueError` if an
    incompatible version of pathgauge wrote it.
    """
    return read_known(Invocation, body)
