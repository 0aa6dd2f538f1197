"""Writes every dashboard as JSON. The id of a panel is its position, so links to a panel stay valid
until a panel is inserted before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from generator import operations, overview, scale, scenario

FOLDER = Path(__file__).parents[1] / "dashboards"
BOARDS = {
    "overview": overview.build,
    "scenario": scenario.build,
    "operations": operations.build,
    "scale": scale.build,
}


def text(board: Dashboard) -> str:
    """The JSON of a dashboard."""
    built: dict[str, Any] = json.loads(json.dumps(board.build(), cls=JSONEncoder))
    for number, panel in enumerate(built["panels"], 1):
        panel["id"] = number
    return json.dumps(built, indent=2, sort_keys=True) + "\n"


def texts() -> dict[str, str]:
    """The contents of all files, by file name."""
    return {f"{name}.json": text(build()) for name, build in BOARDS.items()}


if __name__ == "__main__":
    for name, content in texts().items():
        (FOLDER / name).write_text(content)
