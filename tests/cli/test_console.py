"""Where commands write: files, and standard output on a full disk or of few characters."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from pathgauge.collector.cli.console import write_result
from support.turns import otlp, script, turn


def test_a_file_is_replaced_as_a_whole_with_its_mode_and_behind_its_link(tmp_path: Path) -> None:
    file, link = tmp_path / "refs.yaml", tmp_path / "link.yaml"
    file.write_text("scenario: old\n")
    file.chmod(0o640)
    link.symlink_to(file)
    with file.open() as opened:
        write_result("scenario: new\n", link)
        assert opened.read() == "scenario: old\n"  # who has opened it reads it to its end
    assert (file.read_text(), link.is_symlink()) == ("scenario: new\n", True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [link, file]


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "refs.yaml"
    file.write_text("scenario: old\n")

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_result("scenario: new\n", file)
    assert file.read_text() == "scenario: old\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_is_mounted_by_itself_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "refs.yaml"
    file.write_text("scenario: old\n")

    def busy(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    write_result("scenario: new\n", file)
    assert file.read_text() == "scenario: new\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_result("scenario: new\n", pipe)
    assert os.read(reader, 100) == b"scenario: new\n"
    os.close(reader)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("nowhere/out", "No such file or directory"),
        ("folder", "Is a directory"),
        ("file/out", "Not a directory"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("rules", "--output"),
        ("score", "file", "--junit"),
        ("score", "file", "--html"),
        ("score", "file", "--markdown"),
    ],
    ids=" ".join,
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    run: Callable[..., Result], folder: Path, command: tuple[str, ...], output: str, expected: str
) -> None:
    (folder / "folder").mkdir()
    (folder / "file").touch()
    result = run(*command, output)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"pathgauge: {output}: {expected}\n"


def test_a_dash_is_standard_output_or_refused_beside_a_table(
    run: Callable[..., Result], folder: Path
) -> None:
    assert run("rules", "--output", "-").stdout == run("rules").stdout
    (folder / "traces").touch()
    for option in ("--junit", "--html"):
        refused = run("score", "traces", option, "-")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "found '-', expected a file" in refused.stderr
    assert [file.name for file in folder.iterdir()] == ["traces"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_noticed_before_the_work(
    run: Callable[..., Result], folder: Path
) -> None:
    (folder / "folder").mkdir(mode=0o500)
    result = run("rules", "--output", "folder/out")
    assert result.stderr == "pathgauge: folder/out: Permission denied\n"


def test_a_terminal_that_cannot_show_a_character_shows_its_code(tmp_path: Path) -> None:
    """The gate passes. An exception would end it with status 1."""
    run = turn(script("refund", "lookup", answer="Done, Zoë. 完成"))
    (tmp_path / "traces.bin").write_bytes(otlp(run))
    (tmp_path / "refund.yaml").write_text("{scenario: refund, expected_tools: [lookup]}")

    def output(*command: str) -> bytes:
        return subprocess.run(
            [Path(sys.executable).with_name("pathgauge"), *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "latin-1"},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout

    table = output("score", "traces.bin", "--references", "refund.yaml", "--details")
    assert "actual answer: Done, Zoë. \\u5b8c\\u6210" in table.decode("latin-1")
    written = output("record", "traces.bin")  # as in a file, which is always UTF-8
    assert "expected_response: Done, Zoë. 完成" in written.decode()


@pytest.mark.parametrize(
    "command",
    [
        ("validate",),
        ("scorers",),
        ("score", "traces.bin", "--references", "refund.yaml"),
        ("score", "traces.bin", "--references", "refund.yaml", "--json"),
    ],
    ids=" ".join,
)
def test_output_on_a_full_disk_is_no_verdict(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The gate passes. Status 1 would say that it does not."""
    run = turn(script("refund", "lookup", answer="Done."))
    (tmp_path / "traces.bin").write_bytes(otlp(run))
    (tmp_path / "refund.yaml").write_text(
        "{scenario: refund, expected_tools: [lookup], expected_response: Done.}"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [Path(sys.executable).with_name("pathgauge"), *command],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last) == (2, "pathgauge: No space left on device")
    assert "Traceback" not in done.stderr
