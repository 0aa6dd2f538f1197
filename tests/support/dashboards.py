"""Reads the checked-in Grafana dashboards: their panels, and all queries in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from support.repository import DEPLOY

GRAFANA = DEPLOY / "grafana"
FILES = sorted((GRAFANA / "dashboards").glob("*.json"))
BOARDS: dict[str, Any] = {file.stem: json.loads(file.read_text()) for file in FILES}

VARIABLE = re.compile(r"\$(?:\{(\w+)[^}]*\}|(\w+))")
LABEL_VALUES = re.compile(r"label_values\((?:(.*), )?(\w+)\)")
INSTALLED = {"__rate_interval", "__range", "__all", "__url_time_range", "__data"}
"""Variables that Grafana itself defines."""


class Target(NamedTuple):
    """A query of a panel."""

    board: str
    panel: str
    kind: str
    expr: str
    legend: str
    instant: bool
    exemplar: bool

    def __str__(self) -> str:
        return f"{self.board}: {self.panel}: {self.expr}"


def panels(board: str) -> list[Any]:
    """The panels of a dashboard, without row headings."""
    return [panel for panel in BOARDS[board]["panels"] if panel["type"] != "row"]


def targets() -> Iterator[Target]:
    """Every query of every panel."""
    for board in BOARDS:
        for panel in panels(board):
            for target in panel.get("targets", ()):
                legend = target["legendFormat"]
                yield Target(
                    board,
                    panel["title"],
                    panel["type"],
                    target["expr"],
                    legend,
                    target["instant"],
                    target["exemplar"],
                )


def annotation_queries() -> Iterator[tuple[str, str]]:
    """The dashboard and the query of every annotation."""
    for board, content in BOARDS.items():
        for annotation in content["annotations"].get("list", ()):
            yield board, annotation["expr"]


def variables(board: str) -> list[Any]:
    """The variables at the top of a dashboard."""
    listed: list[Any] = BOARDS[board]["templating"]["list"]
    return listed


def expressions() -> Iterator[tuple[str, str]]:
    """The dashboard and the PromQL of every panel, every annotation, and the selector of every
    variable.
    """
    for target in targets():
        yield target.board, target.expr
    yield from annotation_queries()
    for board in BOARDS:
        for variable in variables(board):
            if variable["type"] == "query":
                selector = LABEL_VALUES.fullmatch(variable["query"])
                assert selector, variable["query"]
                yield board, selector[1]


def filled(expr: str, interval: str = "15s", time_range: str = "5m") -> str:
    """The query as Grafana sends it with *All* selected in every variable."""
    known = {"__rate_interval": interval, "__range": time_range}
    return VARIABLE.sub(lambda match: known.get(match[1] or match[2], ".*"), expr)
