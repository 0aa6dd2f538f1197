"""Mounts file systems for tests: disks that can lose power or fill up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NEEDS_ROOT = "needs root, to mount file systems"


def require_mounts() -> None:
    """Skip the test without the permission to mount."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip(NEEDS_ROOT)


@contextmanager
def ext4(folder: Path, image: Path) -> Iterator[Path]:
    """Mount the ext4 file system in `image`, which is created if necessary. Mounting replays its
    journal, as after a power cut.
    """
    if not image.exists():
        with image.open("wb") as file:
            file.truncate(96 << 20)
        _run("mkfs.ext4", "-q", "-F", image)
    with _mounted(folder, "-o", "loop,errors=remount-ro", image):
        yield folder


def make_read_only(mounted: Path) -> None:
    """Report an error of the disk to the ext4 file system that is mounted there: it lets nobody
    write any more, not even to open files.
    """
    source = _run("findmnt", "-no", "SOURCE", mounted).strip()
    assert source.startswith("/dev/loop"), "no other disk may be harmed"
    trigger = Path("/sys/fs/ext4", Path(source).name, "trigger_fs_error")
    if not trigger.exists():
        pytest.skip("needs a kernel whose ext4 has trigger_fs_error")
    trigger.write_text("1")


@contextmanager
def tmpfs(folder: Path, size: int) -> Iterator[Path]:
    """A file system of `size` bytes."""
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
        yield folder


@contextmanager
def _mounted(folder: Path, *arguments: str | Path) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    try:
        _run("mount", *arguments, folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{NEEDS_ROOT}: {error.stderr.strip()}")
    try:
        yield
    finally:
        _run("umount", "--lazy", folder)


def _run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
