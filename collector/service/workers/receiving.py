"""Stores the turns that other scorers have forwarded to this one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import structlog

from pathgauge.collector.core.otlp.batch import Batch, Consumer, Relayed
from pathgauge.collector.service.workers.messages import Relay
from pathgauge.collector.store.forwarded_turns import batch_of_turn

_log = structlog.get_logger(__name__)


async def store_turns(relay: Relay, accept: Consumer, on_dropped: Callable[[int], None]) -> bool:
    """Pass turns to `accept`; `False` if they have to be sent again. One that cannot be read is
    dropped; `on_dropped` gets the number of these.
    """
    batches = list(_readable(relay))
    if not await _accepted(batches, accept):
        return False
    if dropped := len(relay.turns) - len(batches):
        on_dropped(dropped)
    return True


def _readable(relay: Relay) -> Iterator[Batch]:
    for turn in relay.turns:
        try:
            batch = batch_of_turn(turn.body, Relayed(relay.scorer, turn.id))
        except Exception as error:  # damaged, or of another version
            _log.error(
                "forwarded turn dropped", source=relay.scorer, row=turn.id, reason=str(error)
            )
            continue
        yield batch


async def _accepted(batches: Sequence[Batch], accept: Consumer) -> bool:
    """Once a turn is stored, earlier ones of its scorer are taken for stored, too. So none is
    offered after one that was refused.
    """
    offered: list[asyncio.Future[bool]] = []
    for batch in batches:
        answer = asyncio.ensure_future(accept(batch))
        offered.append(answer)
        await asyncio.sleep(0)  # a refusal does not wait for the disk
        if answer.done() and not answer.result():
            break
    return all(await asyncio.gather(*offered)) and len(offered) == len(batches)
