"""The changes of `tune`, each in a separate process, because they cannot be undone."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FREED = """
import sys
from pathlib import Path
from pathgauge.collector.service.process_tuning import tune

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1] == "tuned":
    tune()
# from the first one of a size on, glibc keeps others of that size when they are freed
bytearray(30 << 20)
before = resident()
blocks, between = [], []
for _ in range(16):
    blocks.append(bytearray(b"x") * (4 << 20))
    between.append(bytearray(50_000))
blocks.clear()
print(resident() - before >> 20)
"""


def run(program: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_large_blocks_go_back_to_the_system_when_they_are_free() -> None:
    kept, tuned = (int(run(FREED, how)) for how in ("as it is", "tuned"))
    assert kept > 32
    assert tuned < 4


def test_threads_switch_within_a_millisecond_and_loaded_modules_are_not_collected() -> None:
    program = (
        "import gc, sys; from pathgauge.collector.service.process_tuning import tune; tune();"
        " print(sys.getswitchinterval() < 0.001, gc.get_freeze_count() > 0)"
    )
    assert run(program) == "True True"


STARTED = """
import gc
from pathgauge.collector.service.process_tuning import starting

with starting():
    print(gc.isenabled())
print(gc.isenabled())
"""


def test_nothing_is_collected_while_the_state_of_traces_is_restored() -> None:
    assert run(STARTED).split() == ["False", "True"]
