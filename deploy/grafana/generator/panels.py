"""Builders for panels with a uniform look. The grid of Grafana is 24 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import quote

from grafana_foundation_sdk.builders import heatmap, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders.common import (
    LineStyle,
    ReduceDataOptions,
    StackingConfig,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    FieldColor,
    Panel,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.heatmap import HeatmapColorOptions, YAxisConfig
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TableColoredBackgroundCellOptions,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)

from generator.queries import RESULTS_URL, SOURCE, Query

GOOD, FAIR, BAD, NEUTRAL = "green", "orange", "red", "text"
STAT_HEIGHT, HEIGHT = 4, 8
TAG = "pathgauge"
DECIMALS = {"none": 3, "short": 0}
"""In tables, by unit: scores need more decimals than counts."""

Steps = Sequence[tuple[float | None, str]]
"""Pairs of the value from which a colour applies, and the colour. The first value is `None`."""
ZERO_IS_GOOD: Steps = ((None, GOOD), (1, BAD))
ONE_IS_GOOD: Steps = ((None, BAD), (1, GOOD))
PLAIN: Steps = ((None, NEUTRAL),)

States = Mapping[int | str, tuple[str, str]]
"""The text and colour of each value."""
Panels = Sequence[Builder[models.Panel]]
BREACHED: States = {0: ("ok", GOOD), 1: ("breached", BAD)}


def single_value(
    title: str,
    description: str,
    expr: str,
    unit: str,
    steps: Steps = PLAIN,
    *,
    states: States | None = None,
) -> stat.Panel:
    """One large number for the whole time range."""
    panel = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(4)
        .height(STAT_HEIGHT)
    )
    panel = (
        panel.with_target(Query(expr, instant=True).build("A"))
        .unit(unit)
        .thresholds(_thresholds(steps))
        .no_value("-")
    )
    panel = panel.reduce_options(ReduceDataOptions().calcs(["lastNotNull"])).graph_mode(
        BigValueGraphMode.NONE
    )
    panel = panel.color_mode(BigValueColorMode.VALUE)
    return panel.mappings([_mapping(states)]) if states else panel


def graph(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    stacked: bool = False,
    max_value: float | None = None,
) -> timeseries.Panel:
    """Lines over time, or stacked bars. `max_value` is the end of the axis."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(width)
        .height(HEIGHT)
        .unit(unit)
        .min(0)
    )
    for position, query in enumerate(queries):
        panel = panel.with_target(query.build(chr(ord("A") + position)))
    legend = (
        VizLegendOptions()
        .show_legend(True)
        .placement(LegendPlacement.BOTTOM)
        .display_mode(LegendDisplayMode.TABLE)
    )
    panel = panel.legend(legend.calcs(["lastNotNull", "mean"]))
    panel = panel.tooltip(
        VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    )
    panel = (
        panel.show_points(VisibilityMode.NEVER)
        .line_width(1)
        .fill_opacity(0 if len(queries) > 1 else 5)
    )
    if max_value is not None:
        panel = panel.max(max_value)
    if stacked:
        panel = (
            panel.draw_style(GraphDrawStyle.BARS)
            .fill_opacity(70)
            .stacking(StackingConfig().mode(StackingMode.NORMAL))
        )
    return panel


def as_limit(panel: timeseries.Panel, ref: str) -> timeseries.Panel:
    """Draw the series of target `ref` as limits: red and dashed."""
    dashes = LineStyle().fill("dash").dash([8, 8]).build()
    return panel.override_by_query(
        ref,
        [
            DynamicConfigValue(
                "color", FieldColor().mode(FieldColorModeId.FIXED).fixed_color(BAD).build()
            ),
            DynamicConfigValue("custom.lineStyle", dashes),
            DynamicConfigValue("custom.fillOpacity", 0),
        ],
    )


def timeline(
    title: str,
    description: str,
    query: Query,
    states: States,
    *,
    width: int = 24,
    height: int = HEIGHT,
) -> statetimeline.Panel:
    """States over time, one row for each series."""
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(width)
        .height(height)
    )
    panel = (
        panel.with_target(query.build("A"))
        .mappings([_mapping(states)])
        .thresholds(_thresholds(PLAIN))
        .unit("none")
    )
    return (
        panel.show_value(VisibilityMode.NEVER)
        .row_height(0.8)
        .line_width(0)
        .fill_opacity(80)
        .merge_values(True)
    )


def distribution(title: str, description: str, unit: str, query: Query) -> heatmap.Panel:
    """The buckets of a histogram over time, with exemplars as points."""
    panel = (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(12)
        .height(HEIGHT)
    )
    panel = (
        panel.with_target(query.build("A"))
        .calculate(False)
        .y_axis(YAxisConfig().unit(unit))
        .unit(unit)
    )
    return panel.color(HeatmapColorOptions().scheme("Blues")).exemplars_color("rgba(255,0,255,0.7)")


def present_table(
    title: str,
    description: str,
    columns: Mapping[str, tuple[str, str]],
    *,
    hidden: Sequence[str] = (),
    width: int = 24,
) -> table.Panel:
    """A table of current values. `columns`: query and unit by column name; the queries are joined
    by the labels that they share.
    """
    panel = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .span(width)
        .height(HEIGHT + 2)
        .unit("none")
    )
    renamed, refs = {}, [chr(ord("A") + position) for position in range(len(columns))]
    for ref, (name, (expr, unit)) in zip(refs, columns.items(), strict=True):
        panel = panel.with_target(Query(expr, format="table").build(ref))
        value = f"Value #{ref}" if len(columns) > 1 else "Value"
        renamed[value] = name
        panel = panel.override_by_name(
            name,
            [
                DynamicConfigValue("unit", unit),
                DynamicConfigValue("decimals", DECIMALS.get(unit, 1)),
            ],
        )
    excluded = {name: True for name in ("Time", "__name__", *hidden)}
    panel = panel.with_transformation(DataTransformerConfig("merge", options={}))
    return panel.with_transformation(
        DataTransformerConfig(
            "organize", options={"excludeByName": excluded, "renameByName": renamed}
        )
    )


def with_state_colours(panel: table.Panel, column: str, states: States) -> table.Panel:
    """Show the values of a column as states, on a coloured background."""
    return panel.override_by_name(
        column,
        [
            DynamicConfigValue("mappings", [_mapping(states)]),
            DynamicConfigValue("custom.cellOptions", TableColoredBackgroundCellOptions()),
        ],
    )


def with_links(panel: table.Panel, column: str, links: Mapping[str, str]) -> table.Panel:
    """Link the cells of a column; `links` are URLs by title."""
    entries = [{"title": title, "url": url} for title, url in links.items()]
    return panel.override_by_name(column, [DynamicConfigValue("links", entries)])


def alerts(title: str, description: str, *, width: int = 8) -> Panel:
    """The alert list of Grafana. It includes the alerts of Prometheus if the data source has
    `manageAlerts`.
    """
    states = {"firing": True, "pending": True, "normal": False, "noData": False, "error": True}
    options = {
        "alertName": "Pathgauge",
        "groupMode": "default",
        "maxItems": 50,
        "sortOrder": 3,
        "stateFilter": states,
        "viewMode": "list",
    }
    return (
        Panel()
        .type("alertlist")
        .title(title)
        .description(description)
        .span(width)
        .height(HEIGHT + 2)
        .options(options)
    )


def board(uid: str, title: str, description: str) -> Dashboard:
    """An empty dashboard with links to the others, and to the pages of the collector."""
    runs = (
        DashboardLink("Failed invocations")
        .type(DashboardLinkType.LINK)
        .url(f"${{{RESULTS_URL}}}/results?verdict=failed")
        .target_blank(True)
    )
    links = (
        DashboardLink("Dashboards")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .include_vars(True)
        .keep_time(True)
        .placement("")
    )
    dashboard = (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG, "llm", "agents"])
        .link(links)
        .link(runs)
        .refresh("30s")
    )
    return (
        dashboard.time("now-6h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
    )


def with_rows(dashboard: Dashboard, rows: Mapping[str, Panels]) -> Dashboard:
    """Add the panels in rows with a heading."""
    for heading, panels in rows.items():
        dashboard = dashboard.with_row(Row(heading))
        for panel in panels:
            dashboard = dashboard.with_panel(panel)
    return dashboard


def to_runs() -> str:
    """The URL of the collector's page for a row of a table."""
    fields = "&".join(f"{name}=${{__data.fields.{name}}}" for name in ("agent", "scenario"))
    return f"${{{RESULTS_URL}}}/scenario?{fields}"


def to_scenario(*labels: Literal["agent", "scenario", "metric"]) -> str:
    """The URL of the scenario dashboard for a row of a table."""
    variables = [f"var-{label}=${{__data.fields.{label}}}" for label in labels]
    parameters = [*variables, "${datasource:queryparam}", "${__url_time_range}"]
    return f"/d/{quote('pathgauge-scenario')}?{'&'.join(parameters)}"


def _thresholds(steps: Steps) -> ThresholdsConfig:
    return (
        ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value, colour) for value, colour in steps])
    )


def _mapping(states: States) -> ValueMap:
    return ValueMap(
        {
            str(value): ValueMappingResult(text=text, color=colour)
            for value, (text, colour) in states.items()
        }
    )
