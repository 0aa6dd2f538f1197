"""Queries, label matchers and variables that the dashboards share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grafana_foundation_sdk.builders.dashboard import (
    DatasourceVariable,
    QueryVariable,
    TextBoxVariable,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

CALLS = "tenant, agent, scenario, metric"
SERIES = f"{CALLS}, judge"
"""The labels that distinguish scores. Without tenants or judges these labels are missing;
aggregation and `=~".*"` treat missing labels as empty.
"""
OF_AGENT = 'agent=~"$agent", tenant=~"$tenant"'
OF_SCENARIO = f'{OF_AGENT}, scenario=~"$scenario"'
OF_SCORE = f'{OF_SCENARIO}, metric=~"$metric"'
OF_VERSION = f'{OF_SCORE}, agent_version=~"$version"'
OF_RELEASE = f'{OF_AGENT}, agent_version=~"$version"'
OF_JOB = 'job=~"$job", instance=~"$instance"'

ALERTS = 'ALERTS{alertname=~"Pathgauge.*", alertname!="PathgaugeWatchdog"}'
"""Without the alert that always fires."""
FIRING = f'{ALERTS[:-1]}, alertstate="firing"}}'
EVALUATED = "pathgauge_evaluations_total"
Format = Literal["time_series", "table", "heatmap"]


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and how Grafana shows the result."""

    expr: str
    legend: str = ""
    exemplar: bool = False
    """Only counters and buckets have exemplars. Prometheus finds them by the selectors of the
    query.
    """
    format: Format = "time_series"
    instant: bool = False
    """Query the end of the time range only, as tables always do."""

    def build(self, ref: str) -> Dataquery:
        """As target `ref` of a panel."""
        query = (
            Dataquery()
            .ref_id(ref)
            .expr(self.expr)
            .legend_format(self.legend or "__auto")
            .format(PromQueryFormat(self.format))
        )
        query = query.datasource(SOURCE).exemplar(self.exemplar)
        if self.instant or self.format == "table":
            return query.instant()
        return query.range()


def rate(name: str, matchers: str, by: str = "") -> str:
    """The increase of a counter per second, summed over collectors."""
    grouping = f" by ({by})" if by else ""
    return f"sum{grouping} (rate({name}{{{matchers}}}[$__rate_interval]))"


def increase(name: str, matchers: str, by: str) -> str:
    """The increase of a counter between two points of a graph."""
    return f"sum by ({by}) (increase({name}{{{matchers}}}[$__rate_interval]))"


def share(
    name: str,
    matchers: str,
    part: str,
    whole: str,
    by: str = "",
    *,
    window: str = "$__rate_interval",
) -> str:
    """The share of `part` in `whole`, both label matchers. Absent if the whole is 0; 0 if the part
    was never counted.
    """
    grouping = f" by ({by})" if by else ""
    numerator, denominator = (
        f"sum{grouping} (rate({name}{{{', '.join(filter(None, (matchers, wanted)))}}}[{window}]))"
        for wanted in (part, whole)
    )
    return f"({numerator} or 0 * {denominator}) / ({denominator} > 0)"


def mean(histogram: str, matchers: str, by: str) -> str:
    """The mean of the observations of a histogram."""
    total = rate(f"{histogram}_sum", matchers, by)
    count = rate(f"{histogram}_count", matchers, by)
    return f"{total} / ({count} > 0)"


def quantile(q: float, histogram: str, matchers: str, by: str = "") -> str:
    """A quantile, interpolated between buckets."""
    labels = ", ".join(filter(None, (by, "le")))
    return f"histogram_quantile({q:g}, {rate(f'{histogram}_bucket', matchers, labels)})"


RESULTS_URL = "results_url"
"""The name of the variable with the address of the collector's pages."""

_SAMPLES = f"pathgauge_score_window_samples{{{OF_SCORE}}}"
WINDOW_MEAN = (
    f"sum by ({SERIES}) (pathgauge_score_window_mean{{{OF_SCORE}}} * {_SAMPLES})"
    f" / sum by ({SERIES}) ({_SAMPLES})"
)
"""The mean over all collectors of gauges that are means, weighted by their samples."""


def datasource() -> DatasourceVariable:
    """The first variable of every dashboard."""
    return (
        DatasourceVariable("datasource")
        .label("Data source")
        .type("prometheus")
        .allow_custom_value(False)
    )


def results_url() -> TextBoxVariable:
    """Where browsers reach the pages of the collector; the last variable of every dashboard."""
    return (
        TextBoxVariable(RESULTS_URL)
        .label("Pages of pathgauge")
        .description("Where your browser reaches the collector, such as https://pathgauge.example")
        .default_value("http://localhost:9464")
    )


def multi_value_variable(label: str, query: str) -> QueryVariable:
    """A variable with multiple selection and *All*."""
    everything = VariableOption(selected=True, text=["All"], value=["$__all"])
    variable = QueryVariable(label).label(label.capitalize()).datasource(SOURCE).query(query)
    variable = (
        variable.definition(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
    )
    return variable.multi(True).include_all(True).all_value(".*").current(everything)


AGENT = multi_value_variable("agent", "label_values(pathgauge_invocations_total, agent)")
SCENARIO = multi_value_variable(
    "scenario", 'label_values(pathgauge_evaluations_total{agent=~"$agent"}, scenario)'
)
METRIC = multi_value_variable(
    "metric",
    'label_values(pathgauge_evaluations_total{agent=~"$agent", scenario=~"$scenario"}, metric)',
)
VERSION = multi_value_variable(
    "version", 'label_values(pathgauge_invocations_total{agent=~"$agent"}, agent_version)'
)
TENANT = multi_value_variable("tenant", "label_values(pathgauge_invocations_total, tenant)")
JOB = multi_value_variable("job", "label_values(pathgauge_build_info, job)")
INSTANCE = multi_value_variable(
    "instance", 'label_values(pathgauge_build_info{job=~"$job"}, instance)'
)
