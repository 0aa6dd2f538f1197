"""Counters and histograms of invocations, whatever they scored."""

from __future__ import annotations

from collections.abc import Collection

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.labels import Labels, TenantLabel
from pathgauge.scorers.types import LOSSES

DURATION_BUCKETS = tuple(0.01 * 2**i for i in range(14))
"""Buckets of the OpenTelemetry metrics `gen_ai.*.duration`."""
TOKEN_BUCKETS = tuple(4**i for i in range(14))
"""Buckets of the OpenTelemetry metric `gen_ai.client.token.usage`."""
CALL_BUCKETS = (0, 1, 2, 3, 4, 5, 8, 13, 21, 34, 55)


class InvocationMetrics:
    """All counters and histograms of invocations. Only one thread at a time may use them."""

    def __init__(self, metrics: DurableMetrics, tenant: TenantLabel) -> None:
        self._tenant = tenant
        agent = tenant.names("agent")
        self._dialects = metrics.stored_values("dialect_of_agent", (*agent, "dialect"))
        """One series for each agent: that of its latest invocation."""
        names = tenant.names("agent", "agent_version")
        self._invocations = metrics.counter(
            "pathgauge_invocations",
            "Evaluated invocations, by whether a reference was found and whether they ended with an"
            " error.",
            (*names, "match", "status"),
        )
        self._duration = metrics.histogram(
            "pathgauge_invocation_duration_seconds",
            "Duration of an invocation.",
            names,
            bounds=DURATION_BUCKETS,
        )
        self._tokens = metrics.histogram(
            "pathgauge_invocation_tokens",
            "Tokens of an invocation, by type (input or output).",
            (*names, "type"),
            bounds=TOKEN_BUCKETS,
        )
        self._tool_calls = metrics.histogram(
            "pathgauge_invocation_tool_calls",
            "Tool calls of an invocation.",
            names,
            bounds=CALL_BUCKETS,
        )
        self._lost = metrics.counter(
            "pathgauge_lost_telemetry",
            "Invocations with signs that spans were lost, by the first sign. Each invocation is"
            " counted once.",
            (*agent, "reason"),
        )

    def count(self, evaluation: Evaluation, labels: Labels) -> None:
        """Count an invocation."""
        invocation = evaluation.invocation
        agent, version = self._agent(labels), self._values(labels)
        self._see_dialect(agent, label_value(invocation.dialect))
        status = "error" if invocation.error else "ok"
        self._invocations.of(*version, _match(evaluation), status).add()
        if (duration := invocation.duration_s) is not None:
            self._duration.of(*version).observe(duration)
        if invocation.input_tokens is not None:
            self._tokens.of(*version, "input").observe(invocation.input_tokens)
        if invocation.output_tokens is not None:
            self._tokens.of(*version, "output").observe(invocation.output_tokens)
        self._count_loss(evaluation, agent)
        if "no_tool_spans" not in invocation.flags and not invocation.telemetry_lost:
            self._tool_calls.of(*version).observe(len(invocation.tool_calls))

    def keep(self, live: Collection[Labels]) -> None:
        """Drop the series of agents and versions that are not among these labels."""
        wanted = {self._values(labels) for labels in live}
        for family in (self._invocations, self._duration, self._tokens, self._tool_calls):
            family.keep(wanted)
        agents = {self._agent(labels) for labels in live}
        self._dialects.keep(agents)
        self._lost.keep(agents)

    def dialects(self) -> dict[tuple[str, ...], str]:
        """The dialect of the latest invocation, by the values of `tenant` and `agent`."""
        return {tuple(agent): dialect for *agent, dialect in (one.labels for one in self._dialects)}

    def _count_loss(self, evaluation: Evaluation, agent: tuple[str, ...]) -> None:
        """All reasons of an agent start at 0 together, so that `increase` sees the first loss."""
        if self._lost.get(*agent, LOSSES[0]) is None:
            for reason in LOSSES:
                self._lost.of(*agent, reason)
        for reason in evaluation.invocation.telemetry_lost[:1]:
            self._lost.of(*agent, reason).add(1)

    def _see_dialect(self, agent: tuple[str, ...], dialect: str) -> None:
        if self._dialects.get(*agent, dialect) is not None:
            return
        self._dialects.drop([one.labels for one in self._dialects if one.labels[:-1] == agent])
        self._dialects.of(*agent, dialect)

    def _agent(self, labels: Labels) -> tuple[str, ...]:
        return self._tenant.values(labels.tenant, labels.agent)

    def _values(self, labels: Labels) -> tuple[str, ...]:
        return self._tenant.values(labels.tenant, labels.agent, labels.agent_version)


def _match(evaluation: Evaluation) -> str:
    match evaluation.match.unmatched:
        case None:
            return "scenario"
        case "scenario_conflict":
            return "ambiguous"
        case _:
            return "unmatched"
