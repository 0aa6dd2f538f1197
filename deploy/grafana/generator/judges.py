"""What judges ask of models: requests, what they take and cost, and what keeps them from asking."""

from __future__ import annotations

from generator.panels import BAD, GOOD, Panels, States, graph, timeline
from generator.queries import OF_JOB, Query, increase, mean, quantile, rate, share

LEFT_ALONE: States = {0: ("asked", GOOD), 1: ("left alone", BAD)}


def panels() -> Panels:
    """Three lines of a dashboard."""
    seconds, cost = "pathgauge_judge_request_duration_seconds", "pathgauge_judge_cost_usd_total"
    without = f'{OF_JOB}, reason=~"judge_.+|budget|not_sampled"'
    return [
        graph(
            "Requests to models",
            "A second, by HTTP status or by what came in its place.",
            "reqps",
            Query(
                rate("pathgauge_judge_requests_total", OF_JOB, "model, code"), "{{model}} {{code}}"
            ),
            width=8,
        ),
        graph(
            "Duration of requests to models",
            "Median and 99th percentile, by model.",
            "s",
            Query(quantile(0.5, seconds, OF_JOB, "model"), "p50 {{model}}"),
            Query(quantile(0.99, seconds, OF_JOB, "model"), "p99 {{model}}"),
            width=8,
        ),
        graph(
            "Scores without a verdict of a judge",
            "From one point to the next, by reason. not_sampled and judge_unconfigured are as"
            " configured.",
            "short",
            Query(
                increase("pathgauge_not_evaluated_total", without, "metric, reason"),
                "{{metric}}: {{reason}}",
            ),
            width=8,
            stacked=True,
        ),
        graph(
            "Tokens of judges",
            "A second, as the models report them.",
            "cps",
            Query(
                rate("pathgauge_judge_tokens_total", OF_JOB, "model, type"), "{{model}} {{type}}"
            ),
            width=8,
        ),
        graph(
            "Cost of judges",
            "US dollars an hour, for models that have a price in the configuration.",
            "currencyUSD",
            Query(f"3600 * {rate(cost, OF_JOB, 'model')}", "{{model}}"),
            width=8,
        ),
        graph(
            "Budgets left",
            "Share of each budget that is left in this hour or day of UTC, on the collector that"
            " has least.",
            "percentunit",
            Query(
                f"min by (window, kind) (pathgauge_judge_budget_remaining_ratio{{{OF_JOB}}})",
                "{{kind}} of the {{window}}",
            ),
            width=8,
            most=1,
        ),
        graph(
            "Questions that cost no request",
            "Questions that were answered from the cache, or with one that was under way, of all.",
            "percentunit",
            Query(
                share("pathgauge_judge_cache_total", OF_JOB, 'result=~"hit|joined"', "", "model"),
                "{{model}}",
            ),
            width=8,
            most=1,
        ),
        graph(
            "Agreement of judges with themselves",
            "Mean share of the answers to one question that agree with the verdict, of judges that"
            " ask more than once.",
            "percentunit",
            Query(mean("pathgauge_judge_agreement", OF_JOB, "metric"), "{{metric}}"),
            width=8,
            most=1,
        ),
        timeline(
            "Models left alone",
            "Red while a model was not asked on any of the collectors, as it kept failing.",
            Query(f"max by (model) (pathgauge_judge_circuit_open{{{OF_JOB}}})", "{{model}}"),
            LEFT_ALONE,
            width=8,
        ),
    ]
