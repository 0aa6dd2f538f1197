"""What `pathgauge lint` finds in a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pathgauge.scorers.types import Json

Level = Literal["problem", "note"]
"""A problem makes scores say nothing, or something wrong. A note may be intended."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    level: Level
    scenario_id: str
    turn: int
    check: str
    """A name for programs, such as `never_equal`."""
    text: str

    def __str__(self) -> str:
        return f"{self.level}: scenario {self.scenario_id}, turn {self.turn}: {self.text}"

    def to_json(self) -> dict[str, Json]:
        """As JSON."""
        return {
            "level": self.level,
            "scenario_id": self.scenario_id,
            "turn": self.turn,
            "check": self.check,
            "text": self.text,
        }
