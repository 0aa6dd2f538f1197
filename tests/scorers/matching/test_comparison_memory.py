"""What a comparison leaves in memory: nothing, as soon as other calls are compared, without the
garbage collector's help.
"""

from __future__ import annotations

import gc
import weakref

from pathgauge.scorers.matching.comparison import ANY_ORDER, IN_ORDER, RULES, compare
from pathgauge.scorers.types import ExpectedCall, ToolCall

EXPECTED = (ExpectedCall("lookup", {"city": "Bern"}), ExpectedCall("book"))


def test_calls_and_their_comparisons_are_gone_when_others_are_compared() -> None:
    gc.disable()
    try:
        comparison = compare((ToolCall("lookup", {"city": "Bern"}), ToolCall("book", {})), EXPECTED)
        for rules in RULES.values():
            comparison.align(rules, IN_ORDER)
            comparison.align(rules, ANY_ORDER)
            comparison.members(rules)
        comparisons, calls = weakref.ref(comparison), weakref.ref(comparison.actual)
        del comparison
        compare((ToolCall("book", {}),), EXPECTED)
        assert (comparisons(), calls()) == (None, None)
    finally:
        gc.enable()
