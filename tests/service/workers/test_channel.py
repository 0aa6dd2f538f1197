"""Messages between processes: what hangs or cannot be read at the other end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from pathgauge.collector.service.workers.channel import open_channel
from support.running import PATIENCE_S

BODY = bytes(100_000)


@pytest.mark.slow
async def test_calls_that_were_given_up_leave_nothing_for_a_process_that_hangs() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        channel = await open_channel(ours)

        async def give_up() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await channel.call(BODY)

        for _ in range(30):
            await give_up()
        waiting = channel._writer.transport.get_write_buffer_size()
        channel.close()
    assert waiting < 4 * len(BODY)


async def test_the_caller_gets_an_error_that_cannot_be_sent_as_it_is() -> None:
    ours, theirs = socket.socketpair()
    one, other = await open_channel(ours), await open_channel(theirs)

    async def fail(message: Any) -> None:
        raise OddError("key", text=message)

    serving = [asyncio.create_task(one.serve(fail)), asyncio.create_task(other.serve(fail))]
    with pytest.raises(RuntimeError, match="of the caller"):
        await asyncio.wait_for(one.call("of the caller"), PATIENCE_S)
    one.close()
    other.close()
    await asyncio.gather(*serving)


class OddError(Exception):
    """Its constructor takes more than `args`."""

    def __init__(self, key: str, *, text: str) -> None:
        super().__init__(f"{key}: {text}")
