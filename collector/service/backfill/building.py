"""Builds the pipeline of a backfill: that of a collector, without a journal."""

from __future__ import annotations

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.evaluations.evaluator import WhenJudged
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.judging.sampling import Sampling
from pathgauge.collector.service.configured_pipeline import configured_pipeline
from pathgauge.scorers.types import Invocation


def build_pipeline(
    config: Config,
    setup: ActiveConfig,
    telemetry: InternalTelemetry,
    *,
    judged: bool,
    declined: bool = False,
) -> Pipeline:
    """`judged`: whether evaluations wait for judges, as far as the configuration samples them.
    `declined`: whether the operator wants none of the judges that are configured to be asked.
    """
    unasked = _not_asked if judged or declined else None
    return configured_pipeline(config, setup, telemetry)(
        judging=_Sampled(config).decide if judged else unasked,
        judging_in_shadow=unasked,
        takes_feedback=config.feedback is not None,
    )


def _not_asked(invocation: Invocation, scenario: str | None) -> WhenJudged:
    """A backfill asks no judges in shadow, and with `--without-judges` no others."""
    return "not_asked"


class _Sampled:
    """Judges the traces that a collector would judge."""

    def __init__(self, config: Config) -> None:
        section = config.judge
        rates = {} if section is None else section.scenarios
        self._sampling = Sampling(
            1.0 if section is None else section.sample_rate,
            {name: scenario.sample_rate for name, scenario in rates.items()},
        )

    def decide(self, invocation: Invocation, scenario: str | None) -> WhenJudged:
        """Whether an invocation is judged."""
        return "later" if self._sampling.takes(invocation, scenario) else "not_sampled"
