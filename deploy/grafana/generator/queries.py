"""What all dashboards ask with: the variables at the top, the label matchers that follow from them,
and queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

CALLS = "tenant, agent, scenario, metric"
SERIES = f"{CALLS}, judge"
"""What tells scores apart. Without tenants the label is missing, as that of the judge where none
judges, which aggregation and `=~".*"` take for empty.
"""
OF_AGENT = 'agent=~"$agent", tenant=~"$tenant"'
OF_SCENARIO = f'{OF_AGENT}, scenario=~"$scenario"'
OF_SCORE = f'{OF_SCENARIO}, metric=~"$metric"'
OF_VERSION = f'{OF_SCORE}, agent_version=~"$version"'
OF_RELEASE = f'{OF_AGENT}, agent_version=~"$version"'
OF_JOB = 'job=~"$job", instance=~"$instance"'

ALERTS = 'ALERTS{alertname=~"Pathgauge.*", alertname!="PathgaugeWatchdog"}'
"""Without the one that always fires."""
FIRING = f'{ALERTS[:-1]}, alertstate="firing"}}'
EVALUATED = "pathgauge_evaluations_total"
Format = Literal["time_series", "table", "heatmap"]


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL with what Grafana does with the answer."""

    expr: str
    legend: str = ""
    exemplar: bool = False
    """Exemplars are on counters and buckets alone; Prometheus has them by the selectors of the
    query.
    """
    format: Format = "time_series"
    instant: bool = False
    """Whether the present is asked for instead of the time range; tables always do."""

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
        return query.instant() if self.instant or self.format == "table" else query.range()


def rate(name: str, matchers: str, by: str = "") -> str:
    """What is added to a counter a second, summed over collectors."""
    return f"sum{f' by ({by})' if by else ''} (rate({name}{{{matchers}}}[$__rate_interval]))"


def increase(name: str, matchers: str, by: str) -> str:
    """How much is added to a counter from one point of a graph to the next."""
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
    """How large a part of what was counted is; absent while nothing of the whole is. A part that
    was never counted is none of it.
    """
    over = f" by ({by})" if by else ""
    taken, total = (
        f"sum{over} (rate({name}{{{', '.join(filter(None, (matchers, wanted)))}}}[{window}]))"
        for wanted in (part, whole)
    )
    return f"({taken} or 0 * {total}) / ({total} > 0)"


def mean(histogram: str, matchers: str, by: str) -> str:
    """Mean of what a histogram was told."""
    return (
        f"{rate(f'{histogram}_sum', matchers, by)} / ({rate(f'{histogram}_count', matchers, by)}"
        " > 0)"
    )


def quantile(q: float, histogram: str, matchers: str, by: str = "") -> str:
    """A quantile, as good as the buckets are."""
    return (
        f"histogram_quantile({q:g},"
        f" {rate(f'{histogram}_bucket', matchers, ', '.join(filter(None, (by, 'le'))))})"
    )


def weighed(mean: str, samples: str, by: str = SERIES) -> str:
    """The mean of gauges that are means over all collectors, each weighed by its samples."""
    counted = f"{samples}{{{OF_SCORE}}}"
    return f"sum by ({by}) ({mean}{{{OF_SCORE}}} * {counted}) / sum by ({by}) ({counted})"


WINDOW_MEAN = weighed("pathgauge_score_window_mean", "pathgauge_score_window_samples")
COMPARED = f"{SERIES}, baseline"
RECENT = weighed("pathgauge_regression_score", "pathgauge_regression_samples", COMPARED)
BASELINE = weighed("pathgauge_baseline_score", "pathgauge_baseline_samples", COMPARED)
P_VALUE = f"min by ({COMPARED}) (pathgauge_regression_p_value{{{OF_SCORE}}})"
"""Of several collectors that of the surest one; they compare their own scores only."""


def datasource() -> DatasourceVariable:
    """The first variable of every dashboard."""
    return (
        DatasourceVariable("datasource")
        .label("Data source")
        .type("prometheus")
        .allow_custom_value(False)
    )


def choice(label: str, query: str, name: str = "") -> QueryVariable:
    """A variable of which several values, or all, may be chosen."""
    everything = VariableOption(selected=True, text=["All"], value=["$__all"])
    variable = (
        QueryVariable(name or label).label(label.capitalize()).datasource(SOURCE).query(query)
    )
    variable = (
        variable.definition(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
    )
    return variable.multi(True).include_all(True).all_value(".*").current(everything)


AGENT = choice("agent", "label_values(pathgauge_invocations_total, agent)")
SCENARIO = choice(
    "scenario", 'label_values(pathgauge_evaluations_total{agent=~"$agent"}, scenario)'
)
METRIC = choice(
    "metric",
    'label_values(pathgauge_evaluations_total{agent=~"$agent", scenario=~"$scenario"}, metric)',
)
VERSION = choice(
    "version", 'label_values(pathgauge_invocations_total{agent=~"$agent"}, agent_version)'
)
TENANT = choice("tenant", "label_values(pathgauge_invocations_total, tenant)")
JOB = choice("job", "label_values(pathgauge_build_info, job)")
INSTANCE = choice("instance", 'label_values(pathgauge_build_info{job=~"$job"}, instance)')
