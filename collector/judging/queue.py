"""The queue of evaluations that wait for judges, and the thread that judges them.

The thread has its own event loop, so that a slow model delays neither senders nor the pipeline. The
queue is bounded in number and in bytes. An evaluation that does not fit gets the result "not
evaluated" at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from pathgauge.collector.core.evaluations.evaluator import (
    OVERLOADED,
    Evaluation,
    EvaluationKey,
    Evaluator,
    result_of,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.scorer_watch import OnFailure, ignore
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.judging.judgment import ActiveJudges
from pathgauge.collector.store.essential import EssentialThread
from pathgauge.scorers.judge_protocol import Ask

_log = structlog.get_logger(__name__)

MAX_QUEUE_BYTES = 64 << 20
"""Size of the evaluations that wait in memory."""

OnJudged = Callable[[PendingJudgment, Evaluation], None]
"""Called once for each evaluation, with a copy that holds only the results of judges."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much is judged at the same time, and how much may wait."""

    concurrency: int = 8
    """Evaluations that are judged at the same time."""
    queue_size: int = 1000
    queue_bytes: int = MAX_QUEUE_BYTES
    deadline: float = 120.0
    """Time limit for one evaluation in seconds; a criterion that misses it has no score."""


class JudgeQueue:
    """`take`, `give_up` and `configure` may be called from any thread, and before `start`."""

    def __init__(
        self,
        ask: Ask,
        on_judged: OnJudged,
        capacity: Capacity,
        evaluator: Evaluator,
        references: ReferenceSet,
        *,
        shadow: str = "",
        on_failure: OnFailure = ignore,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`on_judged` is called in the thread of the queue, and `close` when that ends. `shadow` is
        the fingerprint of criteria in shadow; active ones have none.
        """
        self._ask = ask
        self._on_judged = on_judged
        self._on_failure = on_failure
        self._close = close
        self._capacity = capacity
        self._active = ActiveJudges(evaluator, references, shadow)
        self._waiting: OrderedDict[EvaluationKey, PendingJudgment] = OrderedDict()
        self._waiting_bytes = 0
        self._judging: dict[EvaluationKey, asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._idle = asyncio.Event()
        self._thread = EssentialThread(self._run, "judges")

    @property
    def waiting(self) -> int:
        """Number of evaluations that wait or are being judged."""
        return len(self._waiting) + len(self._judging)

    @property
    def capacity(self) -> int:
        """The limit of `waiting`."""
        return self._capacity.queue_size + self._capacity.concurrency

    @property
    def full(self) -> bool:
        """Whether another evaluation would be refused."""
        return (
            len(self._waiting) >= self._capacity.queue_size
            or self._waiting_bytes >= self._capacity.queue_bytes
        )

    def start(self) -> None:
        """Start judging."""
        self._thread.start()

    def configure(self, evaluator: Evaluator, references: ReferenceSet, shadow: str = "") -> None:
        """Apply other criteria and references to what is judged from now on."""
        self._active = ActiveJudges(evaluator, references, shadow)

    def take(self, pending: PendingJudgment) -> None:
        """Judge an evaluation, instead of an earlier revision of it."""
        self._call(lambda: self._take(pending))

    def give_up(self, key: EvaluationKey) -> None:
        """Stop judging an evaluation; an unknown key is no error."""
        self._call(lambda: self._give_up(key))

    def finish(self, timeout: float) -> None:
        """Wait until everything is judged, for at most `timeout` seconds."""
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
        """Stop. Evaluations that are not judged yet are dropped; a durable store still has them."""
        if not self._thread.is_alive():
            self._loop.close()
            return
        self._call(self._loop.stop)
        self._thread.join()

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop is closed; the store has what is not judged
            _log.debug("the judges were stopped already")

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._shut_down())
        finally:
            self._loop.close()

    async def _shut_down(self) -> None:
        active = asyncio.all_tasks() - {asyncio.current_task()}
        for task in active:
            task.cancel()
        await asyncio.gather(*active, return_exceptions=True)
        if self._close is not None:
            await self._close()

    async def _finish(self) -> None:
        while self.waiting:
            self._idle.clear()
            await self._idle.wait()

    def _take(self, pending: PendingJudgment) -> None:
        self._give_up(pending.key)
        total = self._waiting_bytes + pending.size
        if self.full or (self._waiting and total > self._capacity.queue_bytes):
            self._reject(pending)
            return
        self._waiting[pending.key] = pending
        self._waiting_bytes = total
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
            key, pending = self._waiting.popitem(last=False)
            self._waiting_bytes -= pending.size
            self._judging[key] = self._loop.create_task(self._judge(pending))
        if not self.waiting:
            self._idle.set()

    async def _judge(self, pending: PendingJudgment) -> None:
        try:
            await self._judge_all(pending)
        except Exception:  # the failure of one evaluation must not stop the others
            _log.exception("an evaluation could not be judged", trace_id=pending.key[1])
        if self._judging.get(pending.key) is asyncio.current_task():
            del self._judging[pending.key]
            self._next()

    async def _judge_all(self, pending: PendingJudgment) -> None:
        judgment, deadline = self._active.judgment(pending), self._capacity.deadline
        results = await asyncio.gather(
            *(
                judgment.result(one, self._ask, deadline, self._on_failure)
                for one in judgment.criteria
            )
        )
        self._on_judged(pending, judgment.evaluation(pending, results))

    def _reject(self, pending: PendingJudgment) -> None:
        judgment = self._active.judgment(pending)
        results = [result_of(criterion, OVERLOADED) for criterion in judgment.criteria]
        self._on_judged(pending, judgment.evaluation(pending, results))
