"""Where judges sit: evaluations that wait come in, results of their criteria go out, each
evaluation once.

A thread with an event loop of its own, so that a slow model holds up neither senders nor the
pipeline. What waits is bounded in number and in bytes; what finds no place is told at once not to
be evaluated.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import cast

import structlog

from pathgauge.collector.core.evaluations.evaluator import (
    OVERLOADED,
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
    Result,
    failed,
    result_of,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.scorers.judge_protocol import Ask, Judge, asks_model
from pathgauge.scorers.types import Invocation, Score

_log = structlog.get_logger(__name__)

QUEUE_BYTES = 64 << 20
"""Evaluations that wait for a judge in memory."""

Tell = Callable[[PendingJudgment, Evaluation], None]
"""Is told what judges said: an evaluation with their results alone."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much is judged at a time, and how much may wait."""

    concurrency: int = 8
    """Evaluations at a time."""
    queue_size: int = 1000
    queue_bytes: int = QUEUE_BYTES
    deadline: float = 120.0
    """Seconds that one evaluation may take; what is not judged by then has no score."""


@dataclass(frozen=True, slots=True)
class _InForce:
    evaluator: Evaluator
    references: ReferenceSet


class JudgeQueue:
    """`take`, `give_up` and `configure` may be called from any thread, and before `start`."""

    def __init__(
        self,
        ask: Ask,
        tell: Tell,
        capacity: Capacity,
        evaluator: Evaluator,
        references: ReferenceSet,
        *,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`tell` is called in the thread of the bench, and `close` at its end."""
        self._ask = ask
        self._tell = tell
        self._close = close
        self._capacity = capacity
        self._in_force = _InForce(evaluator, references)
        self._waiting: OrderedDict[EvaluationKey, PendingJudgment] = OrderedDict()
        self._waiting_bytes = 0
        self._judging: dict[EvaluationKey, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._idle = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="judges", daemon=True)

    @property
    def waiting(self) -> int:
        """Evaluations that wait or are being judged."""
        return len(self._waiting) + len(self._judging)

    @property
    def capacity(self) -> int:
        """How many of them there can be."""
        return self._capacity.queue_size + self._capacity.concurrency

    @property
    def full(self) -> bool:
        """Whether there is no place for another one."""
        return (
            len(self._waiting) >= self._capacity.queue_size
            or self._waiting_bytes >= self._capacity.queue_bytes
        )

    def start(self) -> None:
        """Begin to judge."""
        self._thread.start()

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Put other criteria and references in force, for what is judged from now on."""
        self._in_force = _InForce(evaluator, references)

    def take(self, awaited: PendingJudgment) -> None:
        """Judge an evaluation, instead of an earlier revision of it."""
        self._call(lambda: self._take(awaited))

    def give_up(self, key: EvaluationKey) -> None:
        """Judge that evaluation no more; an unknown key is no error."""
        self._call(lambda: self._give_up(key))

    def finish(self, timeout: float) -> None:
        """Wait until everything that was taken is told, for `timeout` seconds at most."""
        if not self._thread.is_alive():
            return
        finished = asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(self._finish(), timeout), self._loop
        )
        try:
            finished.result()
        except TimeoutError:
            _log.warning("evaluations were not judged in time", waiting=self.waiting)

    def stop(self) -> None:
        """End; what is not judged yet is not told any more."""
        if not self._thread.is_alive():
            self._loop.close()
            return
        self._call(self._loop.stop)
        self._thread.join()

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # it has been stopped: what waits is in the store
            _log.debug("the judges have gone home")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._leave())
        finally:
            self._loop.close()

    async def _leave(self) -> None:
        under_way = asyncio.all_tasks() - {
            asyncio.current_task()
        }  # what is being judged, and who waits for that
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if self._close is not None:
            await self._close()

    async def _finish(self) -> None:
        while self.waiting:
            self._idle.clear()
            await self._idle.wait()

    def _take(self, awaited: PendingJudgment) -> None:
        self._give_up(awaited.key)
        if self.full or (
            self._waiting and self._waiting_bytes + awaited.size > self._capacity.queue_bytes
        ):
            self._turn_away(awaited)
            return
        self._waiting[awaited.key] = awaited
        self._waiting_bytes += awaited.size
        self._next()

    def _give_up(self, key: EvaluationKey) -> None:
        dropped = self._waiting.pop(key, None)
        if dropped is not None:
            self._waiting_bytes -= dropped.size
        task = self._judging.pop(key, None)
        if task is not None:
            task.cancel()
            self._next()

    def _next(self) -> None:
        while self._waiting and len(self._judging) < self._capacity.concurrency:
            key, awaited = self._waiting.popitem(last=False)
            self._waiting_bytes -= awaited.size
            self._judging[key] = self._loop.create_task(self._judge(awaited))
        if not self.waiting:
            self._idle.set()

    async def _judge(self, awaited: PendingJudgment) -> None:
        try:
            await self._judge_all(awaited)
        except Exception:  # one evaluation must not keep the others from being judged
            _log.exception("an evaluation could not be judged", trace_id=awaited.key[1])
        if self._judging.get(awaited.key) is asyncio.current_task():
            del self._judging[awaited.key]
            self._next()

    async def _judge_all(self, awaited: PendingJudgment) -> None:
        invocation, match, criteria = self._read(awaited)
        results = await asyncio.gather(
            *(self._result(criterion, invocation, match) for criterion in criteria)
        )
        self._tell_of(awaited, invocation, match, results)

    async def _result(self, criterion: Criterion, invocation: Invocation, match: Match) -> Result:
        try:
            async with asyncio.timeout(self._capacity.deadline):
                return result_of(
                    criterion,
                    await cast(Judge, criterion.scorer).judge(invocation, match.turn, self._ask),
                )
        except TimeoutError:
            text = f"not judged within {self._capacity.deadline:g} s"
            return result_of(criterion, Score.not_evaluated("judge_timeout", text))
        except Exception as error:  # a judge is foreign code, as every scorer
            return failed(criterion, error)

    def _turn_away(self, awaited: PendingJudgment) -> None:
        invocation, match, criteria = self._read(awaited)
        self._tell_of(
            awaited, invocation, match, [result_of(criterion, OVERLOADED) for criterion in criteria]
        )

    def _read(self, awaited: PendingJudgment) -> tuple[Invocation, Match, tuple[Criterion, ...]]:
        in_force, invocation = self._in_force, awaited.invocation()
        match = in_force.references.match(invocation, awaited.turn)
        return invocation, match, in_force.evaluator.judges_for(match)

    def _tell_of(
        self,
        awaited: PendingJudgment,
        invocation: Invocation,
        match: Match,
        results: Iterable[Result],
    ) -> None:
        self._tell(
            awaited,
            Evaluation(invocation, match, tuple(results), awaited.closed_by, awaited.revision),
        )


def without_judges(
    awaited: PendingJudgment, evaluator: Evaluator, references: ReferenceSet
) -> Evaluation:
    """What is said of an evaluation that an earlier process left to judges, when nobody judges any
    more.
    """
    invocation = awaited.invocation()
    evaluation = evaluator.evaluate(
        invocation,
        references.match(invocation, awaited.turn),
        closed_by=awaited.closed_by,
        revision=awaited.revision,
    )
    return replace(
        evaluation,
        results=tuple(
            result for result in evaluation.results if asks_model(result.criterion.scorer)
        ),
    )
