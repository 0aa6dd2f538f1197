"""What every oracle does: cases come in as JSON lines, what the package says of each goes out as
JSON lines, after its version.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Case = dict[str, Any]
Results = dict[str, float]


def answer(packages: tuple[str, ...], results: Callable[[Case], Results]) -> None:
    """Answer standard input on standard output, which gets nothing else that the packages may
    print.
    """
    out, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps({package: version(package) for package in packages}), file=out)
    for line in sys.stdin:
        case = json.loads(
            line, parse_constant=float
        )  # each NaN an object of its own, as NaNs from different places are
        print(json.dumps(results(case)), file=out)
