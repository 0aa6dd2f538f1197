"""Serves an application on loopback, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from support.running import until


@contextmanager
def serving(app: Any, **tls: Any) -> Iterator[int]:
    """Serve the application; gives the port."""
    quiet: Any = {"log_config": None, "log_level": "error", "lifespan": "off"}
    config = uvicorn.Config(app, port=0, **quiet, **tls)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    assert until(lambda: server.started)
    [socket] = server.servers[0].sockets
    yield socket.getsockname()[1]
    server.should_exit = True
    thread.join()
