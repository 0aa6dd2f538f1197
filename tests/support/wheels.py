"""Builds wheels and sdists of the project, as pip does."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def build(target: str, source: Path, output: Path) -> Path:
    """The sdist or wheel of the project in `source`."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    command += ["--directory", str(output)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = output.iterdir()
    return built


def files(wheel: Path) -> list[str]:
    """The names of the files in a wheel."""
    return sorted(zipfile.ZipFile(wheel).namelist())
