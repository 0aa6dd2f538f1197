"""The score of a conversation has what judges said of its turns, whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.judged import WORKS, DueOpinion, InProcessCollector, Model, request, run_of
from support.running import until

TALK = Reference("talk", (ReferenceTurn(user_input="first"), ReferenceTurn(user_input="second")))
IDLE_S = 100.0


def start(folder: Path, model: Model, judge: str = "m@1") -> InProcessCollector:
    opinion = Criterion("opinion", DueOpinion(), 0.5, judge=judge)
    return InProcessCollector(
        model,
        folder,
        criteria=(WORKS, opinion),
        references=(TALK,),
        conversation_idle=IDLE_S,
    )


def turn(number: int) -> Batch:
    named = {"gen_ai.conversation.id": "c", "test.case.id": "talk"}
    return request(run_of("a", trace=str(number), start=10.0 * number, attributes=named))


async def judged_turn(life: InProcessCollector, number: int) -> None:
    """Send a turn, and wait until it has been evaluated and judged."""
    before = len(life.sink.published)
    await life.send(turn(number))
    life.pass_time(6)
    assert until(lambda: len(life.sink.published) == before + 2), life.sink.published


def scores_at_the_end(life: InProcessCollector) -> dict[str, float | None]:
    life.pass_time(IDLE_S + 1)
    assert until(lambda: life.sink.conversations)
    [case] = life.sink.conversations
    return {score.criterion.name: score.value for score in case.scores}


async def test_what_judges_said_of_a_turn_counts_after_a_restart(tmp_path: Path) -> None:
    first = start(tmp_path, Model(0.25))
    await judged_turn(first, 1)
    first.end()
    second = start(tmp_path, Model(0.75))
    await judged_turn(second, 2)
    scores = scores_at_the_end(second)
    second.end()
    assert scores == {"opinion": 0.5}


async def test_what_another_judge_said_before_a_restart_does_not_count(tmp_path: Path) -> None:
    first = start(tmp_path, Model(0.25))
    await judged_turn(first, 1)
    first.end()
    second = start(tmp_path, Model(0.75), judge="m@2")
    await judged_turn(second, 2)
    scores = scores_at_the_end(second)
    second.end()
    assert scores == {"opinion": 0.75}
