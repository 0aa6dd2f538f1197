"""The Grafana dashboards, without Grafana: up to date, well-formed, and with queries for existing
series.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.__main__ import texts
from support.dashboards import (
    BOARDS,
    FILES,
    GRAFANA,
    INSTALLED,
    VARIABLE,
    Target,
    annotation_queries,
    expressions,
    filled,
    panels,
    targets,
    variables,
)
from support.repository import DOCS

METRICS = (DOCS / "metrics.md").read_text()
DOCUMENTED = {
    name: (kind, set(re.findall(r"`(\w+)`", labels)))
    for name, kind, labels in re.findall(
        r"^\| `(pathgauge_\w+)` \| (\w+) \| (.*?) \|", METRICS, re.MULTILINE
    )
}
"""The kind and labels of every series. Another test compares the page with the exporter."""
OTHERS = {
    "ALERTS",
    "up",
    "scrape_samples_scraped",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
}
UNNARROWED = {"pathgauge_last_evaluation_timestamp_seconds": {'agent=~"$agent"'}}
"""The time since the last score of a scenario does not depend on the selected agent."""
SCRAPED = {"job", "instance"}

SELECTOR = re.compile(r"\b(pathgauge_\w+|ALERTS|up|scrape_\w+|process_\w+)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)(=~|!~|!=|=)\"")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
WINDOW = re.compile(r"\[([^\]]+)\]")

PANELS = [
    pytest.param(board, panel, id=f"{board}: {panel['title']}")
    for board in BOARDS
    for panel in panels(board)
]
TARGETS = [
    pytest.param(target, id=f"{target.board}: {target.panel}: {number}")
    for number, target in enumerate(targets())
]


def family(name: str) -> str:
    """The documented name of a series, without the suffix of histograms."""
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    return base if DOCUMENTED.get(base, ("",))[0] == "histogram" else name


def labels_of(name: str) -> set[str]:
    labels = DOCUMENTED[family(name)][1]
    bucket = {"le"} if name.endswith("_bucket") else set()
    of_tenants = labels & {"agent", "scenario"} or labels == {"metric", "judge"}
    return labels | SCRAPED | bucket | ({"tenant"} if of_tenants else set())


def test_the_files_are_what_the_generator_writes() -> None:
    assert {file.name: file.read_text() for file in FILES} == texts(), (
        "out of date: run `make manifests`"
    )


def test_every_dashboard_has_a_stable_uid_and_tags() -> None:
    assert {board: (content["uid"], content["title"]) for board, content in BOARDS.items()} == {
        "operations": ("pathgauge-operations", "pathgauge / Operations"),
        "overview": ("pathgauge-overview", "pathgauge / Overview"),
        "scale": ("pathgauge-scale", "pathgauge / Scale"),
        "scenario": ("pathgauge-scenario", "pathgauge / Scenario"),
    }
    for content in BOARDS.values():
        assert content["tags"] == ["pathgauge", "llm", "agents"]
        assert {"description", "refresh", "schemaVersion", "time", "timezone"} <= content.keys()
        assert "id" not in content, "an id is that of one Grafana"


@pytest.mark.parametrize(
    ("board", "names"),
    [
        ("overview", ["datasource", "agent", "scenario", "metric", "tenant"]),
        ("scenario", ["datasource", "agent", "scenario", "metric", "version", "tenant"]),
        ("operations", ["datasource", "job", "instance"]),
        ("scale", ["datasource", "job", "instance"]),
    ],
)
def test_variables_are_in_the_usual_order_and_allow_all(board: str, names: list[str]) -> None:
    source, *rest, pages = variables(board)
    assert [variable["name"] for variable in variables(board)] == [*names, "results_url"]
    assert (pages["type"], pages["query"]) == ("textbox", "http://localhost:9464")
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    for variable in rest:
        assert (
            variable["type"],
            variable["multi"],
            variable["includeAll"],
            variable["allValue"],
        ) == ("query", True, True, ".*")
        assert variable["current"]["value"] == ["$__all"]
        assert variable["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("board", BOARDS)
def test_used_and_defined_variables_are_the_same(board: str) -> None:
    used = {
        a or b for a, b in VARIABLE.findall(json.dumps({**BOARDS[board], "links": []}))
    } - INSTALLED
    in_links = {"results_url"}
    assert used | in_links == {variable["name"] for variable in variables(board)}


@pytest.mark.parametrize("board", BOARDS)
def test_panels_fill_the_grid_without_overlaps_or_holes(board: str) -> None:
    cells: dict[tuple[int, int], str] = {}
    for panel in BOARDS[board]["panels"]:
        x, y, width, height = (panel["gridPos"][side] for side in "xywh")
        for cell in [
            (column, line) for column in range(x, x + width) for line in range(y, y + height)
        ]:
            assert cells.setdefault(cell, panel["title"]) == panel["title"]
    assert {column for column, _ in cells} == set(range(24))
    assert {line for _, line in cells} == set(range(1 + max(line for _, line in cells)))
    assert len(cells) == 24 * (1 + max(line for _, line in cells))


@pytest.mark.parametrize("board", BOARDS)
def test_panels_have_unique_ids_and_titles(board: str) -> None:
    listed = BOARDS[board]["panels"]
    assert [panel["id"] for panel in listed] == list(range(1, 1 + len(listed)))
    assert not [a["title"] for a, b in combinations(listed, 2) if a["title"] == b["title"]]


@pytest.mark.parametrize(("board", "panel"), PANELS)
def test_panels_have_a_description_a_unit_and_the_selected_data_source(
    board: str, panel: Any
) -> None:
    assert panel["description"].endswith(".")
    if panel["type"] == "alertlist":  # asks Grafana
        assert "targets" not in panel
        return
    asked = [panel, *panel["targets"]]
    assert [of["datasource"] for of in asked] == [
        {"type": "prometheus", "uid": "${datasource}"}
    ] * len(asked)
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert [target["refId"] for target in panel["targets"]] == [
        chr(ord("A") + number) for number in range(len(panel["targets"]))
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_rates_use_the_rate_interval_or_the_time_range(target: Target) -> None:
    window = "$__range" if target.instant else "$__rate_interval"
    assert set(WINDOW.findall(target.expr)) <= {window}
    assert len(re.findall(r"\b(?:rate|increase)\(", target.expr)) == len(
        WINDOW.findall(target.expr)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_a_legend_has_all_labels_of_the_query_result(target: Target) -> None:
    """Otherwise lines of two tenants, for example, have one name."""
    groups = [
        {label.strip() for label in labels.split(",")} for labels in GROUPED.findall(target.expr)
    ]
    left = set.intersection(*groups) if groups else set()
    if target.kind != "heatmap":
        left -= {"le"}  # histogram_quantile takes it away
    if target.kind not in ("table", "stat"):
        assert set(re.findall(r"\{\{(\w+)\}\}", target.legend)) == left
        assert target.legend != "__auto", "a line needs a name"


@pytest.mark.parametrize("target", [target for target in targets() if target.exemplar], ids=str)
def test_exemplars_are_queried_only_for_series_that_can_have_them(target: Target) -> None:
    names = [name for name, _ in SELECTOR.findall(target.expr)]
    assert names
    assert [name for name in names if not name.endswith(("_bucket", "_total"))] == []


@pytest.mark.parametrize(("board", "expr"), sorted(set(expressions())))
def test_every_series_exists_with_the_labels_that_queries_use(board: str, expr: str) -> None:
    selectors = SELECTOR.findall(expr)
    assert selectors
    for name, matchers in selectors:
        if name not in OTHERS:
            assert family(name) in DOCUMENTED
            assert {label for label, _ in MATCHER.findall(matchers)} <= labels_of(name)
    grouped = {label.strip() for labels in GROUPED.findall(expr) for label in labels.split(",")}
    known = set.union(SCRAPED, *(labels_of(name) for name, _ in selectors if name not in OTHERS))
    assert grouped <= known


@pytest.mark.parametrize(
    ("board", "expr"),
    sorted({(target.board, target.expr) for target in targets()} | set(annotation_queries())),
)
def test_every_query_uses_the_variables_of_its_dashboard(board: str, expr: str) -> None:
    chosen = [
        ("agent", "agent"),
        ("scenario", "scenario"),
        ("metric", "metric"),
        ("agent_version", "version"),
        ("tenant", "tenant"),
    ]
    if board in ("operations", "scale"):
        chosen = [("job", "job"), ("instance", "instance")]
    offered = {variable["name"] for variable in variables(board)}
    for name, matchers in SELECTOR.findall(expr):
        if name == "ALERTS":
            has = set()
        else:
            has = {"job", "instance"} if name in OTHERS else labels_of(name)
        wanted = {
            f'{label}=~"${variable}"'
            for label, variable in chosen
            if label in has and variable in offered
        }
        assert wanted - set(matchers.split(", ")) <= UNNARROWED.get(name, set())


def test_links_lead_to_existing_dashboards() -> None:
    uids = set(re.findall(r"/d/([\w-]+)", json.dumps(BOARDS)))
    assert uids
    assert uids <= {content["uid"] for content in BOARDS.values()}


def test_exemplars_link_to_traces_and_to_the_pages_of_the_collector() -> None:
    sources = yaml.safe_load(
        (GRAFANA / "provisioning" / "datasources" / "pathgauge.yaml").read_text()
    )["datasources"]
    by_uid = {source["uid"]: source for source in sources}
    trace, page = by_uid["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert (trace["name"], page["name"]) == ("trace_id", "trace_id")
    assert by_uid[trace["datasourceUid"]]["type"] == "tempo"
    assert page["url"] == "http://localhost:9464/results/$${__value.raw}"  # `$$` becomes `$`
    assert [source["name"] for source in sources if source.get("isDefault")] == ["Prometheus"]


def test_the_provider_is_read_only() -> None:
    [provider] = yaml.safe_load(
        (GRAFANA / "provisioning" / "dashboards" / "pathgauge.yaml").read_text()
    )["providers"]
    assert (provider["type"], provider["allowUiUpdates"], provider["disableDeletion"]) == (
        "file",
        False,
        True,
    )


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool is not on PATH, so the queries were not parsed",
)
def test_prometheus_can_parse_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": filled(expr)}
        for number, (_, expr) in enumerate(expressions())
    ]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    checked = subprocess.run(
        ["promtool", "check", "rules", file], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
