"""The rights in Kafka that docs/scaling.md names, so that a broker and the manifests can be given
the same.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from support.repository import DOCS


class Right(NamedTuple):
    """One operation that is allowed."""

    kind: str
    """`topic` or `group`."""
    name: str
    principal: str
    operation: str


def documented_rights() -> list[Right]:
    """Kind and name of a resource, principal and operation, as `kafka-acls.sh` gets them."""
    page = (DOCS / "scaling.md").read_text(encoding="utf-8")
    found = []
    for command in re.findall(r"kafka-acls\.sh (.*?[^\\])\n", page, re.DOTALL):
        options = re.findall(r"--(\S+) (?!--)(\S+)", command)
        [user] = [value for name, value in options if name == "allow-principal"]
        resources = [one for one in options if one[0] in ("topic", "group")]
        for kind, name in resources:
            names = ["otlp_spans", "otlp_logs"] if name == "$topic" else [name]
            found += [
                Right(kind, one, user, operation)
                for one in names
                for option, operation in options
                if option == "operation"
            ]
    return found
