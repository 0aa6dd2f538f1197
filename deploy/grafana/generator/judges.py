"""Panels about the requests of judges to models: rate, duration, cost, budgets and failures."""

from __future__ import annotations

from generator.panels import BAD, GOOD, Panels, States, graph, timeline
from generator.queries import OF_JOB, Query, increase, mean, quantile, rate, share

SUSPENSION_STATES: States = {0: ("asked", GOOD), 1: ("suspended", BAD)}


def panels() -> Panels:
    """Four rows of panels."""
    seconds, cost = "pathgauge_judge_request_duration_seconds", "pathgauge_judge_cost_usd_total"
    without = f'{OF_JOB}, reason=~"judge_.+|budget|not_sampled"'
    return [
        graph(
            "Requests to models",
            "Per second, by HTTP status, or by the error if there was no answer.",
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
            "Evaluations without a verdict of a judge",
            "Between two points, by reason. not_sampled and judge_unconfigured follow from the"
            " configuration.",
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
            "Per second, as reported by the models.",
            "cps",
            Query(
                rate("pathgauge_judge_tokens_total", OF_JOB, "model, type"), "{{model}} {{type}}"
            ),
            width=8,
        ),
        graph(
            "Cost of judges",
            "US dollars per hour, for models with a price in the configuration.",
            "currencyUSD",
            Query(f"3600 * {rate(cost, OF_JOB, 'model')}", "{{model}}"),
            width=8,
        ),
        graph(
            "Remaining budgets",
            "Remaining share of each budget in the current hour or day (UTC), on the collector with"
            " the least.",
            "percentunit",
            Query(
                f"min by (window, kind) (pathgauge_judge_budget_remaining_ratio{{{OF_JOB}}})",
                "{{kind}} of the {{window}}",
            ),
            width=8,
            max_value=1,
        ),
        graph(
            "Questions without a request",
            "Share of the questions that were answered from the cache or by a request in flight.",
            "percentunit",
            Query(
                share("pathgauge_judge_cache_total", OF_JOB, 'result=~"hit|joined"', "", "model"),
                "{{model}}",
            ),
            width=8,
            max_value=1,
        ),
        graph(
            "Self-agreement of judges",
            "Mean share of the answers to a question that agree with the verdict, for judges that"
            " ask more than once.",
            "percentunit",
            Query(mean("pathgauge_judge_agreement", OF_JOB, "metric"), "{{metric}}"),
            width=8,
            max_value=1,
        ),
        graph(
            "Agreement with people",
            "Cohen's kappa of each metric with the answers of people, with its 95 % bounds; 0 is"
            " chance.",
            "short",
            _of_people("pathgauge_feedback_kappa", "{{metric}} {{judge}} {{tenant}}"),
            _of_people(
                "pathgauge_feedback_kappa_lower", "{{metric}} {{judge}} {{tenant}}: at least"
            ),
            _of_people(
                "pathgauge_feedback_kappa_upper", "{{metric}} {{judge}} {{tenant}}: at most"
            ),
            width=8,
            max_value=1,
        ),
        graph(
            "Runs answered by people",
            "Runs or sessions with a verdict of a metric and of people, in the window.",
            "short",
            _of_people("pathgauge_feedback_pairs", "{{metric}} {{judge}} {{tenant}}"),
            width=8,
        ),
        graph(
            "Answers of people",
            "By what became of them; waiting for the result of their trace, or without a verdict.",
            "short",
            Query(f"max by (state) (pathgauge_feedback_answers{{{OF_JOB}}})", "{{state}}"),
            width=8,
            stacked=True,
        ),
        timeline(
            "Suspended models",
            "Red while any collector did not ask the model because it kept failing.",
            Query(f"max by (model) (pathgauge_judge_circuit_open{{{OF_JOB}}})", "{{model}}"),
            SUSPENSION_STATES,
            width=8,
        ),
    ]


def _of_people(name: str, legend: str) -> Query:
    """A gauge about the agreement with people; one process shows it."""
    return Query(f"max by (tenant, metric, judge) ({name}{{{OF_JOB}}})", legend)
