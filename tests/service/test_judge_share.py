"""The shares of all scorers together are what the configuration allows."""

from __future__ import annotations

from hypothesis import given, strategies as st

from pathgauge.collector.config import Config
from pathgauge.collector.config.judging import Judge, JudgeBudget
from pathgauge.collector.config.shadowing import Shadow
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.service.judge_share import share_of


@given(st.integers(1, 100), st.integers(1, 9))
def test_shares_add_up_and_nobody_has_none(limit: int, total: int) -> None:
    budget = JudgeBudget(calls_per_day=limit, usd_per_hour=float(limit))
    judge = Judge.model_construct(concurrency=limit, queue_size=limit, budget=budget)
    config = Config().with_changes({"judge": judge, "shadow": Shadow(budget=budget)})
    configs = [share_of(config, Partition(number, total)) for number in range(total)]
    shares = [one.judge for one in configs if one.judge is not None]
    assert [one.shadow and one.shadow.budget for one in configs] == [one.budget for one in shares]
    expected = max(limit, total)
    assert sum(one.concurrency for one in shares) == expected
    assert sum(one.queue_size for one in shares) == expected
    assert sum(one.budget.calls_per_day or 0 for one in shares) == expected
    assert abs(sum(one.budget.usd_per_hour or 0 for one in shares) - limit) < 1e-9
    assert {one.budget.tokens_per_day for one in shares} == {None}
    assert min(one.concurrency for one in shares) >= 1


def test_without_judges_nothing_is_divided() -> None:
    config = Config()
    assert share_of(config, Partition(0, 2)) is config
