"""The end of a process: threads that are still in native code do not matter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.running import PATIENCE_S

PROGRAM = """
import threading, time
from pathgauge.collector.service.process_end import end_process

threading.Thread(target=time.sleep, args=(600,)).start()
print("done", flush=False)
end_process()
"""

WITHOUT_STREAM = """
import sys
from pathgauge.collector.service.process_end import end_process

{statement}
print("done", file=sys.stderr, flush=False)
end_process()
"""


def test_a_process_ends_with_status_0_and_all_it_said_whatever_threads_still_run() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n")


@pytest.mark.parametrize("statement", ["sys.stdout = None", "sys.stdout.close()"])
def test_a_process_whose_output_is_closed_ends_with_status_0_too(statement: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_STREAM.format(statement=statement)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "done\n")
