"""Starts processes under limits of the system: open files, address space, memory of a cgroup."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

Prefix: TypeAlias = Sequence[str]
"""The first words of a command that runs another one under a limit."""

_MEMORY = Path("/sys/fs/cgroup/memory")


def few_files(files: int) -> Prefix:
    """At most so many open files."""
    return _shell(f"ulimit -n {files}")


def small_address_space(size: int) -> Prefix:
    """At most so many bytes of mapped memory."""
    return _shell(f"ulimit -v {size // 1024}")


class Cgroup:
    """A cgroup with a limit on memory, in use or not. The kernel ends a process that exceeds it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def prefix(self) -> Prefix:
        """Runs a command in this group."""
        return _shell(f"echo $$ > {self._folder}/cgroup.procs")

    @property
    def most_used(self) -> int:
        """The highest use so far, with files that the kernel could drop, in bytes."""
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            if (self._folder / name).exists():
                return int((self._folder / name).read_text())
        return 0


@contextmanager
def memory_cgroup(size: int) -> Iterator[Cgroup]:
    """A group below that of this process. Skips the test where that is not permitted."""
    folder = _group_of_this_process() / f"pathgauge-{uuid.uuid4().hex[:8]}"
    limit = "memory.limit_in_bytes" if _MEMORY.is_dir() else "memory.max"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"needs a memory cgroup: {error}")
    try:
        try:
            (folder / limit).write_text(str(size))
        except OSError as error:
            pytest.skip(f"needs a memory cgroup: {error}")
        yield Cgroup(folder)
    finally:
        folder.rmdir()


def _group_of_this_process() -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if _MEMORY.is_dir() and "memory" in controllers.split(","):
            return _MEMORY / path.lstrip("/")
        if not _MEMORY.is_dir() and number == "0":
            return Path("/sys/fs/cgroup") / path.lstrip("/")
    pytest.skip("needs a memory cgroup: this process has none")


def _shell(limit: str) -> Prefix:
    return ["sh", "-c", f'{limit} && exec "$0" "$@"']
