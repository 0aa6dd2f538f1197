"""Reads the memory limits of this process: of its cgroup, and of `ulimit`.

The kernel ends a process that exceeds the limit of its cgroup. With a limit on the address space,
allocations fail instead: gRPC aborts, and a thread whose stack cannot grow ends the process too.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pathgauge.collector.receivers.memory_guard import STATM, Kind

_UNLIMITED = 1 << 60
"""cgroup v1 has no word for it, but a number close to 2^63."""
_FILES = {"cgroup2": ("memory.max", "memory.high"), "cgroup": ("memory.limit_in_bytes",)}
_RLIMITS: dict[Kind, tuple[int, str]] = {
    "address_space": (resource.RLIMIT_AS, "ulimit -v"),
    "data": (resource.RLIMIT_DATA, "ulimit -d"),
}


class MemoryLimit(NamedTuple):
    """One limit."""

    kind: Kind
    bytes: int
    source: str
    """Where it is set, for messages."""


def read_limits(root: Path = Path("/")) -> list[MemoryLimit]:
    """The limits of this process; of its cgroups only the lowest. None where their use cannot be
    measured. `root` is the folder that holds `proc`.
    """
    if not (root / STATM.removeprefix("/")).exists():
        return []
    limits = [
        MemoryLimit(kind, soft, name)
        for kind, (number, name) in _RLIMITS.items()
        if (soft := resource.getrlimit(number)[0]) != resource.RLIM_INFINITY
    ]
    lowest = min(_limits_of_cgroups(root), key=lambda limit: limit.bytes, default=None)
    return limits if lowest is None else [lowest, *limits]


def _limits_of_cgroups(root: Path) -> Iterator[MemoryLimit]:
    """The limits of the cgroup and of all groups around it that can be seen from here."""
    for type_, mounted, at in _mounts(root):
        group = root / at.relative_to("/") / _below(_group(root, type_), mounted)
        top = root / at.relative_to("/")
        for folder in (group, *group.parents):
            for name in _FILES[type_]:
                limit = _number(folder / name)
                if limit is not None and limit < _UNLIMITED:
                    yield MemoryLimit("resident", limit, f"cgroup {name}")
            if folder == top:
                break


def _mounts(root: Path) -> Iterator[tuple[str, PurePosixPath, PurePosixPath]]:
    """Type, mounted group and mount point of the file systems of memory cgroups."""
    for line in _text(root / "proc/self/mountinfo").splitlines():
        fields, _, rest = line.partition(" - ")
        type_, _, options = rest.partition(" ")
        # The last word; before it is the name of the device, which may be empty.
        controllers = options.rpartition(" ")[2].split(",")
        if type_ == "cgroup2" or (type_ == "cgroup" and "memory" in controllers):
            mounted, at = fields.split()[3:5]
            yield type_, PurePosixPath(mounted), PurePosixPath(at)


def _group(root: Path, type_: str) -> PurePosixPath:
    """The path of this process in the hierarchy of a type."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if (number == "0") if type_ == "cgroup2" else "memory" in controllers.split(","):
            return PurePosixPath(path)
    return PurePosixPath("/")


def _below(group: PurePosixPath, mounted: PurePosixPath) -> PurePosixPath:
    """Where a group is below the mount point. A container may see only its own group, and the path
    of the host.
    """
    if group.is_relative_to(mounted):
        return group.relative_to(mounted)
    return PurePosixPath()


def _number(file: Path) -> int | None:
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    """The content of a file; empty if there is none."""
    try:
        return file.read_text()
    except OSError:
        return ""
