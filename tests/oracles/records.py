"""What an oracle said of many cases: from its package, which runs in an environment of its own, or
from a golden file made by it.

A golden file is compressed JSON lines: the versions of the packages, then cases with their results.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from .cases import Case

SEED = "pathgauge"
TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden" / "oracles"
LONGEST_S = 900

Results = dict[str, float]


class Record(NamedTuple):
    """A case and the scores that an oracle gives it, by the names that they have there."""

    case: Case
    results: Results


def generated(kind: Callable[[Random], Case], count: int) -> list[str]:
    """The first cases of a kind, as JSON; each has a seed of its own, so that a longer list begins
    with a shorter one.
    """
    return [_json(kind(Random(f"{SEED}/{kind.__name__}/{number}"))) for number in range(count)]


def asked(python: str, runner: str, cases: Sequence[str]) -> tuple[dict[str, str], list[Record]]:
    """The versions of an oracle's packages, and what it says of the cases now."""
    command = [os.path.abspath(python), "-m", f"oracles.runners.{runner}"]
    done = subprocess.run(
        command,
        input="\n".join(cases),
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    versions, *lines = map(json.loads, done.stdout.splitlines())
    return versions, [
        Record(json.loads(case), results) for case, results in zip(cases, lines, strict=True)
    ]


def golden(runner: str) -> list[Record]:
    """What the golden file of an oracle holds."""
    _, *lines = gzip.decompress(_path(runner).read_bytes()).decode().splitlines()
    return [Record(**json.loads(line)) for line in lines]


def write_golden(runner: str, versions: dict[str, str], records: Iterable[Record]) -> None:
    """Write the golden file of an oracle."""
    lines = [_json({"packages": versions}), *(_json(record._asdict()) for record in records)]
    _path(runner).write_bytes(
        gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    )


def _path(runner: str) -> Path:
    return GOLDEN / f"{runner}.jsonl.gz"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
