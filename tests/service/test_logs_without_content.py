"""Exceptions in the log have their type and stack, but not the content that their text quotes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
import structlog
from structlog.testing import capture_logs

from pathgauge.collector.service import logging as logs

QUOTED = "alice@example.com"


@pytest.fixture
def written(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Literal["console", "json"]], io.StringIO]]:
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers, root.level

    def configured(form: Literal["console", "json"]) -> io.StringIO:
        monkeypatch.setattr("sys.stderr", stream)
        logs.configure("info", form)
        return stream

    yield configured
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def fail() -> None:
    try:
        raise KeyError(QUOTED)
    except KeyError as error:
        failure = ValueError(f"cannot read {QUOTED}")
        failure.add_note(QUOTED)
        raise failure from error


def test_a_logger_that_was_used_follows_the_next_configuration(written: Any) -> None:
    stream, logger = written("json"), structlog.get_logger("pathgauge.collector.service.worker")
    logger.error("first")
    structlog.reset_defaults()
    with capture_logs() as captured:
        logger.error("second")
    assert captured == [{"event": "second", "log_level": "error"}]
    assert "second" not in stream.getvalue()


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.parametrize("library", [False, True])
def test_an_exception_is_shown_without_its_text(
    written: Any, form: Literal["console", "json"], library: bool
) -> None:
    stream = written(form)
    try:
        fail()
    except ValueError:
        (
            logging.getLogger("uvicorn.error")
            if library
            else structlog.get_logger("pathgauge.collector.service.worker")
        ).exception("step failed")
    shown = stream.getvalue()
    assert [
        QUOTED in shown,
        *(part in shown for part in ("step failed", "KeyError", "ValueError", "in fail", __file__)),
    ] == [
        False,
        *[True] * 5,
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, QUOTED, QUOTED), "OSError: No space left on device"),
        (OSError(QUOTED), "OSError"),
        (sqlite3.OperationalError("database is locked"), "OperationalError: database is locked"),
        (ModuleNotFoundError("No module named 'x'"), "ModuleNotFoundError: No module named 'x'"),
        (UnicodeEncodeError("utf-8", QUOTED, 0, 1, QUOTED), "UnicodeEncodeError"),
    ],
)
def test_the_text_of_the_system_is_shown(written: Any, error: Exception, expected: str) -> None:
    stream = written("json")
    structlog.get_logger("x").error("failed", exc_info=error)
    assert json.loads(stream.getvalue())["exception"] == expected


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_name_of_a_sender_does_not_control_the_terminal(
    written: Any, form: Literal["console", "json"]
) -> None:
    stream = written(form)
    structlog.get_logger("x").info("unknown", scenario="a\x1b[31mb\x07\u202ec")
    assert stream.getvalue().rstrip("\n").isprintable()
    assert "31mb" in stream.getvalue()


def test_what_nobody_caught_in_a_task_is_shown_without_its_text(written: Any) -> None:
    stream = written("json")

    async def forgotten() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(logs.log_unhandled)
        task = loop.create_task(asyncio.to_thread(fail))
        await asyncio.wait([task])

    asyncio.run(forgotten())
    line = json.loads(stream.getvalue())
    assert line["event"] == "unhandled: Task exception was never retrieved"
    assert (QUOTED in stream.getvalue(), line["exception"].endswith("ValueError")) == (False, True)
