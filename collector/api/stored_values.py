"""Values as they are stored. A later version of pathgauge may have written them, before a downgrade
or beside this one, or answers a command: its verdicts and categories are shown as they are.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from pathgauge.collector.core.evaluations.evaluator import VERDICTS
from pathgauge.collector.core.evidence.categories import CATEGORIES


def _schema(known: tuple[str, ...]) -> dict[str, Any]:
    """Of text that is mostly one of these."""
    return {"anyOf": [{"type": "string", "enum": list(known)}, {"type": "string"}]}


StoredVerdict = Annotated[str, WithJsonSchema(_schema(VERDICTS))]
StoredCategory = Annotated[str, WithJsonSchema(_schema(CATEGORIES))]
