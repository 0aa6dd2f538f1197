"""Text that Python's `repr` may have written: text in, its expression out, at a cost that is
bounded.
"""

from __future__ import annotations

import ast

LONGEST = 2**17
"""Characters. Python's parser takes up to 500 bytes and 4 µs for each, so 66 MB and half a second.
"""


def expression(text: str) -> ast.expr:
    """The expression that a text is. Raises what Python's parser does, and ValueError for text that
    is too long.
    """
    if len(text) > LONGEST:
        raise ValueError(f"found {len(text):,} characters, expected at most {LONGEST:,}")
    return ast.parse(text.lstrip(" \t"), mode="eval").body
