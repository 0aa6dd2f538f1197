"""Descriptors that are kept for one server stay with it while nobody connects."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from pathgauge.collector.receivers.server.spare_files import SpareFiles


@contextmanager
def no_file_left() -> Iterator[None]:
    """All descriptors of this process are in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard)
    )
    try:
        while is_file_left():
            used.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in used:
            os.close(file)


def is_file_left() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


def test_a_file_is_kept_when_nobody_connects_and_taken_when_somebody_does() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        listener.setblocking(False)
        spare = SpareFiles(2)
        spare.refill()
        with no_file_left():
            for _ in range(3):
                assert spare.accept(listener) is None
                assert not is_file_left()
            client.connect(listener.getsockname())
            accepted = spare.accept(listener)
            assert accepted is not None
            assert not is_file_left()
            accepted[0].close()
            spare.refill()
            assert not is_file_left()
        spare.close()
