"""One scorer process as its parent sees it. It is started again whenever it ends, and is ended when
it does not answer for long.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import structlog

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.service.workers.channel import Channel, ChannelClosedError, open_channel
from pathgauge.collector.service.workers.messages import Append, Start, Status, Stop

_log = structlog.get_logger(__name__)

APPEND_S = 8.0
"""How long a part of a request may take. Exporters give up after 10 s."""
STARTED_S = 60.0
CANNOT_START = 78
"""The exit status of a scorer that cannot use its store or configuration; its log says why."""
STALE_S = 10.0
"""A scorer that has told nothing for so long does not answer."""
HUNG_S = 60.0
"""After so long it is killed, and started again."""
_LOOK_S = 1.0
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.2, 10.0
_STABLE_S = 30.0
"""After so long, the end of a process is the first of a new series."""

OnMessage = Callable[["ScorerProcess", Any], Awaitable[None]]


class ScorerSilentError(Exception):
    """A scorer does not answer, or does not run."""


class ScorerProcess:
    """For the event loop of the parent."""

    def __init__(self, start: Callable[[], Start], number: int, on_message: OnMessage) -> None:
        """`start` returns the first message. `on_message` handles what the scorer tells."""
        self.number = number
        self.status: Status | None = None
        """The last one, however old; `None` while the process does not run."""
        self.restarts = 0
        self._start = start
        self._on_message = on_message
        self._channel: Channel | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._decided = asyncio.Event()
        self._told_at = 0.0
        self._stopping = asyncio.Event()

    @property
    def present(self) -> Status | None:
        """How the scorer is; `None` while it does not run or does not answer. For any thread."""
        return self.status if time.monotonic() <= self._told_at + STALE_S else None

    @property
    def pid(self) -> int | None:
        """Of the process that runs."""
        return None if self._process is None else self._process.pid

    async def started(self) -> bool:
        """Wait until the scorer accepts requests; `False` if it cannot, or takes too long."""
        try:
            async with asyncio.timeout(STARTED_S):
                await self._decided.wait()
        except TimeoutError:
            return False
        return self.status is not None

    async def run(self) -> None:
        """Keep a process running until `stop`."""
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = loop.time()
            try:
                await self._run_once()
            except Exception:  # such as no memory for another process
                _log.exception("scorer could not be started", scorer=self.number)
            if self._process is not None and self._process.returncode == CANNOT_START:
                self._decided.set()
            if self._stopping.is_set():
                return
            if loop.time() >= began + _STABLE_S:
                pause = _FIRST_PAUSE_S
            _log.error(
                "scorer ended; it is started again",
                scorer=self.number,
                after_s=pause,
                **_ending(self._process),
            )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)
            self.restarts += 1

    async def append(self, batch: Batch) -> bool:
        """Have the scorer store its part of a request; `False` if it is not stored in time."""
        if self.status is None:
            return False
        try:
            async with asyncio.timeout(APPEND_S):
                return bool(await self.call(Append(batch.origin, batch.sent_as, batch.body)))
        except (TimeoutError, ChannelClosedError):
            return False

    async def call(self, message: object) -> Any:
        """Send a message and wait for its answer. Raises `ChannelClosedError`, and what the scorer
        has raised.
        """
        if self._channel is None:
            raise ChannelClosedError("the scorer does not run")
        return await self._channel.call(message)

    async def ask(self, message: object) -> Any:
        """Send a message and wait for its answer, as long as the scorer answers anything. Raises
        `ScorerSilentError`, and what the scorer has raised.
        """
        call = asyncio.ensure_future(self.call(message))
        try:
            while not call.done():
                if self.present is None:
                    raise ScorerSilentError(self.unready()[0])
                await asyncio.wait([call], timeout=_LOOK_S)
            return call.result()
        except ChannelClosedError as error:
            raise ScorerSilentError(f"scorer {self.number} is not running") from error
        finally:
            call.cancel()

    async def tell(self, message: object) -> None:
        """Send a message, if the scorer runs."""
        if self._channel is not None:
            with suppress(ChannelClosedError):
                await self._channel.tell(message)

    async def stop(self, timeout: float) -> None:
        """Have the scorer process what is queued and end; kill it after `timeout` seconds, and
        again as many for what it has to tell.
        """
        self._stopping.set()
        try:
            async with asyncio.timeout(2 * timeout):
                await self.call(Stop(timeout))
        except (TimeoutError, ChannelClosedError):
            _log.error("scorer did not finish in time", scorer=self.number)
        if self._channel is not None:
            self._channel.close()
        await self._end(timeout)

    def unready(self) -> list[str]:
        """The reasons for which it accepts no requests; for any thread."""
        if self.status is None:
            return [f"scorer {self.number} is not running"]
        if (status := self.present) is None:
            return [f"scorer {self.number} does not answer"]
        return [f"scorer {self.number}: {reason}" for reason in status.unready]

    async def _run_once(self) -> None:
        self._process = None
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "pathgauge.collector.service.workers.process"),
                str(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the parent, which stops its scorers
            )
        self._channel = await open_channel(ours)
        watch = asyncio.create_task(self._watch(self._process))
        try:
            await self._channel.tell(self._start())
            await self._channel.serve(self._handle)
        finally:
            watch.cancel()
            self._channel.close()
            self._channel, self.status = None, None
            await self._end(APPEND_S)

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Say that the scorer does not answer, and kill it if that does not end."""
        silent_s, is_stale = 0.0, False
        while silent_s < HUNG_S:
            told_at = self._told_at
            await asyncio.sleep(_LOOK_S)
            # Time in which this process was stopped itself does not count.
            answered = self.status is None or self._told_at != told_at
            silent_s = 0.0 if answered else silent_s + _LOOK_S
            if is_stale and answered:
                _log.info("scorer answers again", scorer=self.number)
            elif silent_s >= STALE_S and not is_stale:
                _log.error("scorer does not answer", scorer=self.number, killed_after_s=HUNG_S)
            is_stale = silent_s >= STALE_S
        _log.error("scorer is killed: it does not answer", scorer=self.number, after_s=HUNG_S)
        with suppress(ProcessLookupError):
            process.kill()

    async def _handle(self, message: Any) -> None:
        if isinstance(message, Status):
            self.status, self._told_at = message, time.monotonic()
            self._decided.set()
        else:
            await self._on_message(self, message)

    async def _end(self, timeout: float) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        try:
            async with asyncio.timeout(timeout):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _ending(process: asyncio.subprocess.Process | None) -> dict[str, int | str]:
    """The status of a process that has ended, or the signal that ended it: without memory, the
    system sends SIGKILL.
    """
    code = None if process is None else process.returncode
    if code is None:
        return {}
    if code >= 0:
        return {"status": code}
    with suppress(ValueError):
        return {"signal": signal.Signals(-code).name}
    return {"signal": str(-code)}
