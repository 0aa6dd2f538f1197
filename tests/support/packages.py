"""Installed packages with entry points, as pip leaves them behind."""

from __future__ import annotations

from pathlib import Path


def install(folder: Path, group: str, package: str = "acme", /, **points: str) -> None:
    """Install the entry points of a package below a folder, or replace those it has there."""
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (metadata / "entry_points.txt").write_text(f"[pathgauge.{group}]\n{lines}")
