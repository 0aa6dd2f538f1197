"""The ratios of the last release, and what became worse since.

Ratios depend on the number of cores, because the load generator uses some of them. So the file has
one record for each number of cores, and a machine with another number is not compared.

Where others use the machine, rates differ by half from round to round. So a worse median is not
enough: a ratio that was as good as at the last release in any round is not worse.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.rounds import Key, Ratios

FILE = Path(__file__).with_name("ratios.json")
TOLERANCE = 0.15


def record(ratios: Mapping[Key, Ratios], file: Path = FILE) -> None:
    """Store the ratios as those of this release, for this number of cores."""
    stored = json.loads(file.read_text()) if file.exists() else {}
    rows = {
        str(key): {name: round(value, 3) for name, value in of._asdict().items()}
        for key, of in ratios.items()
    }
    stored[_cores()] = {"release": version("pathgauge"), "ratios": rows}
    file.write_text(json.dumps(stored, indent=2) + "\n")


def worse(rounds: Mapping[Key, Sequence[Ratios]], file: Path = FILE) -> list[str]:
    """What is at least 15 % worse than at the last release in the median of the rounds, and in none
    of them as good as it was.
    """
    return list(_worse(rounds, _rows(file)))


def is_recorded(file: Path = FILE) -> bool:
    """Whether there is anything to compare with on this machine."""
    return bool(_rows(file))


def _worse(
    rounds: Mapping[Key, Sequence[Ratios]], rows: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    for key, ratios in rounds.items():
        for name, before in rows.get(str(key), {}).items():
            values = [getattr(one, name) for one in ratios]
            losses = [now / before if name == "cpu" else before / now for now in values]
            if median(losses) > 1 + TOLERANCE and min(losses) > 1:
                yield f"{key}: {name} {median(values):.2f}, was {before:.2f}"


def _rows(file: Path) -> Mapping[str, Mapping[str, float]]:
    stored = json.loads(file.read_text()) if file.exists() else {}
    found: Mapping[str, Mapping[str, float]] = stored.get(_cores(), {}).get("ratios", {})
    return found


def _cores() -> str:
    return f"{os.cpu_count()} cores"
