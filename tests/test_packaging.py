"""A wheel holds every module once, whether it is built from a checkout or from an sdist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from support.repository import ROOT
from support.wheels import build, files

OWN = ("__init__.py", "__init__.pyi", "__main__.py", "py.typed")


def modules(folder: Path) -> set[str]:
    """The files of the two packages, as a wheel names them."""
    return {
        f"pathgauge/{path.relative_to(ROOT)}"
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def relative_links(wheel: Path) -> list[str]:
    """The links of the wheel's README that work only in a checkout."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        text = archive.read(metadata).decode()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    return [link for link in links if not link.startswith(("https://", "#"))]


@pytest.mark.slow
def test_the_wheel_of_a_checkout_and_the_wheel_of_an_sdist_hold_every_module_once(
    tmp_path: Path,
) -> None:
    direct = build("wheel", ROOT, tmp_path / "direct")
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    folder = tmp_path / "extracted"
    folder.mkdir()
    # `TarFile.extractall` without a filter warns, and Python before 3.11.4 has none.
    subprocess.run(["tar", "-xf", sdist, "-C", folder], check=True)
    (extracted,) = folder.iterdir()
    from_sdist = build("wheel", extracted, tmp_path / "from_sdist")
    for wheel in (direct, from_sdist):
        names = files(wheel)
        assert len(names) == len(set(names))
        packaged = {name for name in names if name.startswith("pathgauge/")}
        own = {f"pathgauge/{name}" for name in OWN}
        boards = (ROOT / "deploy/grafana/dashboards").iterdir()
        own |= {f"pathgauge/dashboards/{board.name}" for board in boards}
        assert packaged == modules(ROOT / "collector") | modules(ROOT / "scorers") | own
        assert relative_links(wheel) == []


def test_make_says_why_it_installs_packages_again(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for lock in ROOT.glob("requirements*.lock"):
        shutil.copy(lock, tmp_path)

    def said() -> list[str]:
        make = ["make", "--dry-run", ".venv/.dev"]
        done = subprocess.run(make, cwd=tmp_path, check=True, capture_output=True, text=True)
        return re.findall(r"in \.venv; (.*)\.", done.stdout)

    assert said() == ["only the first time"] * 2
    (tmp_path / ".venv").mkdir()
    for number, mark in enumerate((".venv/.run", ".venv/.dev")):
        (tmp_path / mark).touch()
        os.utime(tmp_path / mark, (2e9 + number, 2e9 + number))
    assert said() == []
    os.utime(tmp_path / "requirements-dev.lock", (3e9, 3e9))
    assert said() == ["again because of requirements-dev.lock"]
    os.utime(tmp_path / "requirements-dev.lock", (1e9, 1e9))
    os.utime(tmp_path / "pyproject.toml", (3e9, 3e9))
    assert said() == ["again because of pyproject.toml"] * 2
