"""Output as lines of the log."""

from __future__ import annotations

import io
import logging
import sys
import threading

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.service.printed_lines import MAX_CHARS, Format, HeldOutput, printed_to


def test_lines_are_logged_when_they_end_and_the_rest_at_the_end() -> None:
    with capture_logs() as logged, printed_to("json"):
        print("one\ntwo", end="")
        print(" goes on", "x" * MAX_CHARS, sep="\n", end="")
        print("unfinished", file=sys.stderr, end="")
        sys.stdout.close()
        print("still open")
    assert [(one["stream"], one["text"]) for one in logged] == [
        ("stdout", "one"),
        ("stdout", "two goes on"),
        ("stdout", "x" * MAX_CHARS),
        ("stdout", "still open"),
        ("stderr", "unfinished"),
    ]


def test_lines_of_threads_do_not_mix() -> None:
    first, second = threading.Event(), threading.Event()

    def other() -> None:
        first.wait()
        print("of the ", end="")
        second.set()
        print("thread")

    thread = threading.Thread(target=other)
    thread.start()
    with capture_logs() as logged, printed_to("json"):
        print("of the ", end="")
        first.set()
        second.wait()
        print("test")
        thread.join()
    assert sorted(one["text"] for one in logged) == ["of the test", "of the thread"]


def test_the_last_line_of_a_thread_is_logged_when_it_has_ended_and_at_the_end() -> None:
    printed, ending = threading.Event(), threading.Event()

    def go_on() -> None:
        print("of one that goes on", end="")
        printed.set()
        ending.wait()

    ended = threading.Thread(target=print, args=("of one that has ended",), kwargs={"end": ""})
    other = threading.Thread(target=go_on)
    with capture_logs() as logged:
        with printed_to("json"):
            ended.start()
            ended.join()
            print("next")
            other.start()
            printed.wait()
        ending.set()
        other.join()
    texts = [one["text"] for one in logged]
    assert texts == ["of one that has ended", "next", "of one that goes on"]


def test_a_stream_that_is_printed_to_has_what_streams_have() -> None:
    euro = "\N{EURO SIGN}\n".encode()
    with capture_logs() as logged, printed_to("json"):
        sys.stdout.buffer.write(b"bytes\n" + euro[:1])
        sys.stdout.buffer.write(euro[1:])
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        print("\udc80", sys.stdout.name, sys.stdout.isatty(), sys.stdout.encoding)
        wrapped = io.TextIOWrapper(sys.stdout.buffer, "utf-8")
        print("wrapped", file=wrapped)
        wrapped.close()
        print("after it")
        sys.stdout.detach()  # type: ignore[union-attr]
    assert [one["text"] for one in logged] == [
        "bytes",
        "\N{EURO SIGN}",
        "\\udc80 <stdout> False utf-8",
        "wrapped",
        "after it",
    ]


def test_for_people_output_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with capture_logs() as logged, printed_to("console"):
        print("to people")
    assert (logged, capsys.readouterr().out) == ([], "to people\n")


def test_output_is_held_until_the_format_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with HeldOutput() as held:
        print("early")
    assert capsys.readouterr().out == ""
    with capture_logs() as logged:
        held.release("json")
    assert [one["text"] for one in logged] == ["early"]


def test_output_before_an_error_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with HeldOutput():
            print("early")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert capsys.readouterr().out == "early\n"


@pytest.mark.parametrize("form", ["console", "json"])
def test_whoever_keeps_a_stream_while_output_is_held_is_heard_later(
    form: Format, capsys: pytest.CaptureFixture[str]
) -> None:
    with HeldOutput() as held:
        handler = logging.StreamHandler(sys.stderr)
        sys.stderr.buffer.write(b"early\n")
        sys.stderr.close()
    with capture_logs() as logged:
        held.release(form)
        handler.emit(logging.makeLogRecord({"msg": "late"}))
    printed = {"console": capsys.readouterr().err.splitlines()}
    assert printed.get(form, [one["text"] for one in logged]) == ["early", "late"]


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_stream_may_be_closed_before_the_process_begins(
    form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with HeldOutput() as held:
        print("early")
    with capture_logs() as logged:
        held.release(form)
    assert [one["text"] for one in logged] == {"console": [], "json": ["early"]}[form]
