"""Memory limits of cgroups, in trees of files like those of Linux, and of `ulimit`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pathgauge.collector.service.memory.limits import MemoryLimit, read_limits

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"
CPU = "33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"
V1_IN_CONTAINER = "35 31 0:32 /docker/1a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory"
UNIFIED = "40 31 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
NAMELESS = "24 23 0:5 / /proc rw - proc  rw"
TMP = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755"
NO_LIMIT = "9223372036854771712"


def tree(root: Path, mounts: list[str], groups: str, **files: str) -> Path:
    """A root folder; `files` are below `sys/fs/cgroup`."""
    proc = root / "proc/self"
    proc.mkdir(parents=True)
    (proc / "mountinfo").write_text("".join(f"{line}\n" for line in mounts))
    (proc / "cgroup").write_text(groups)
    (proc / "statm").write_text("0 0 0 0 0 0 0\n")
    for name, text in files.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("mounts", "groups", "files", "expected"),
    [
        pytest.param([], "", {}, [], id="no cgroups"),
        pytest.param([V2], "0::/\n", {"memory.max": "max"}, [], id="v2 without a limit"),
        pytest.param(
            [V2],
            "0::/\n",
            {"memory.max": "419430400", "memory.high": "max"},
            [("memory.max", 419430400)],
            id="v2 in a container",
        ),
        pytest.param(
            [V2],
            "0::/system.slice/pathgauge.service\n",
            {
                "system.slice/pathgauge.service/memory.max": "500",
                "system.slice/pathgauge.service/memory.high": "400",
                "system.slice/memory.max": "max",
            },
            [("memory.high", 400)],
            id="v2 under systemd, with a softer limit",
        ),
        pytest.param(
            [V2],
            "0::/system.slice/pathgauge.service\n",
            {
                "system.slice/pathgauge.service/memory.max": "500",
                "system.slice/memory.max": "300",
            },
            [("memory.max", 300)],
            id="a group around it has a lower limit",
        ),
        pytest.param(
            [V2], "0::/gone\n", {"memory.max": "700"}, [("memory.max", 700)], id="unknown group"
        ),
        pytest.param(
            [TMP, NAMELESS, CPU, V1, UNIFIED],
            "4:memory:/jobs/1\n3:cpu:/other\n0::/\n",
            {
                "memory/memory.limit_in_bytes": NO_LIMIT,
                "memory/jobs/memory.limit_in_bytes": NO_LIMIT,
                "memory/jobs/1/memory.limit_in_bytes": "419430400",
                "memory/other/memory.limit_in_bytes": "1",
            },
            [("memory.limit_in_bytes", 419430400)],
            id="v1",
        ),
        pytest.param(
            [V1_IN_CONTAINER],
            "4:memory:/docker/1a\n",
            {"memory/memory.limit_in_bytes": "600"},
            [("memory.limit_in_bytes", 600)],
            id="v1 in a container",
        ),
        pytest.param(
            [V1_IN_CONTAINER],
            "4:memory:/\n",
            {"memory/memory.limit_in_bytes": "600"},
            [("memory.limit_in_bytes", 600)],
            id="v1 in a container that hides its path",
        ),
    ],
)
def test_the_lowest_limit_of_all_cgroups_around_the_process_is_found(
    mounts: list[str],
    groups: str,
    files: dict[str, str],
    expected: list[tuple[str, int]],
    tmp_path: Path,
) -> None:
    root = tree(tmp_path, mounts, groups, **files)
    assert read_limits(root) == [
        MemoryLimit("resident", limit, f"cgroup {name}") for name, limit in expected
    ]


def test_there_are_no_limits_where_memory_cannot_be_measured(tmp_path: Path) -> None:
    root = tree(tmp_path, [V2], "0::/\n", **{"memory.max": "1"})
    (root / "proc/self/statm").unlink()
    assert read_limits(root) == []


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("RLIMIT_AS", ("address_space", "ulimit -v")),
        ("RLIMIT_DATA", ("data", "ulimit -d")),
    ],
)
def test_limits_of_the_process_are_found(limit: str, expected: tuple[str, str]) -> None:
    program = (
        "import resource; from pathlib import Path;"
        "from pathgauge.collector.service.memory.limits import read_limits;"
        f"resource.setrlimit(resource.{limit}, (4 << 30, -1));"
        "print([tuple(one) for one in read_limits() if one.kind != 'resident'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    kind, source = expected
    assert done.stdout.strip() == str([(kind, 4 << 30, source)])
