"""Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

PATH = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    PATH is None, reason="chromium is not on PATH: sudo apt-get install chromium"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without open pages."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=PATH, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()
