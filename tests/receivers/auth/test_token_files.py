"""Files of bearer tokens: valid and invalid content, and changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.config.secret_files import SecretFileError
from pathgauge.collector.receivers.auth.tokens import TokenFile, bearer

FIRST, SECOND, THIRD = (
    "first-token-0123456789",
    "second-token-0123456789",
    "third-token-0123456789==",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def write(path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def held(file: TokenFile) -> list[bool]:
    return [file.holds(token) for token in (FIRST, SECOND, THIRD)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(FIRST, [True, False, False], id="one without a line end"),
        pytest.param(f"{FIRST}\n{SECOND}\n", [True, True, False], id="two"),
        pytest.param(
            f"\ufeff# of team-a\r\n\r\n  {SECOND}\t\r\n#{FIRST}\r\n{THIRD}\r\n",
            [False, True, True],
            id="comments, blanks, CRLF, BOM",
        ),
    ],
)
def test_a_file_holds_a_token_a_line(path: Path, text: str, expected: list[bool]) -> None:
    assert held(TokenFile(write(path, text))) == expected


@pytest.mark.parametrize(
    "token",
    ["", FIRST[:-1], FIRST + "x", FIRST.upper(), f"{FIRST}\n{SECOND}", "#", "é" * 16, "\udcff"],
)
def test_nothing_like_a_token_is_one(path: Path, token: str) -> None:
    assert not TokenFile(write(path, f"{FIRST}\n{SECOND}\n")).holds(token)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "found no token, expected one per line", id="empty"),
        pytest.param(
            "# none yet\n\n", "found no token, expected one per line", id="comments alone"
        ),
        pytest.param(
            f"{FIRST}\nfifteen-chars-x\n",
            "2: found a token of 15 characters, expected at least 16",
            id="short",
        ),
        pytest.param(
            f"{FIRST} {SECOND}\n",
            "1: found a character that is not allowed in tokens, expected letters, digits and"
            " -._~+/, and = only at the end",
            id="two on a line",
        ),
        pytest.param(
            "pässwörter-sind-lang\n",
            "1: found a character that is not allowed in tokens, expected letters, digits and"
            " -._~+/, and = only at the end",
            id="umlauts",
        ),
        pytest.param(
            b"\xff\xfe" * 20,
            "found bytes that are not UTF-8, expected one token per line",
            id="binary",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_without_telling_secrets(
    path: Path, text: str | bytes, problem: str
) -> None:
    with pytest.raises(SecretFileError) as caught:
        TokenFile(write(path, text))
    assert str(caught.value) in (f"{path}: {problem}", f"{path}:{problem}")


def test_a_missing_file_is_refused(path: Path) -> None:
    with pytest.raises(SecretFileError) as caught:
        TokenFile(path)
    assert (
        str(caught.value)
        == f"found {str(path)!r}, which cannot be read: No such file or directory; expected a file"
    )


@pytest.mark.parametrize(
    ("mode", "warns"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True)]
)
def test_a_file_that_others_may_read_is_a_warning(path: Path, mode: int, warns: bool) -> None:
    expected = (
        (f"{path}: other users can read these tokens: mode {mode:04o}, better 0600",)
        if warns
        else ()
    )
    assert TokenFile(write(path, FIRST, mode)).warnings == expected


@pytest.mark.parametrize(
    ("mode", "warns"),
    [(0o400, False), (0o440, False), (0o640, False), (0o660, True), (0o644, True)],
)
def test_a_file_of_another_user_may_be_read_by_its_group_as_secrets_of_kubernetes_are(
    path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, warns: bool
) -> None:
    file = TokenFile(write(path, FIRST, mode))
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    expected = (
        (f"{path}: other users can read these tokens: mode {mode:04o}, better 0640",)
        if warns
        else ()
    )
    assert file.warnings == expected


def test_a_replaced_file_that_others_may_read_is_a_warning_too(path: Path) -> None:
    file = TokenFile(write(path, FIRST))
    write(path.with_name("next"), SECOND, 0o644).replace(path)
    with capture_logs() as logs:
        file.refresh()
        file.refresh()
    assert [one["warning"] for one in logs if one["log_level"] == "warning"] == [
        f"{path}: other users can read these tokens: mode 0644, better 0600"
    ]


def test_a_changed_file_is_in_force_at_once(path: Path) -> None:
    file = TokenFile(write(path, FIRST))
    write(path, f"{FIRST}\n{SECOND}")
    file.refresh()
    assert held(file) == [True, True, False]
    write(path.with_name("next"), SECOND).replace(path)
    file.refresh()
    assert held(file) == [False, True, False]


def test_a_link_that_is_turned_is_a_change(path: Path) -> None:
    """As Kubernetes rotates secrets."""
    for name, token in (("one", FIRST), ("two", SECOND)):
        write(path.with_name(name), token)
    path.symlink_to("one")
    file = TokenFile(path)
    path.with_name("link").symlink_to("two")
    path.with_name("link").replace(path)
    file.refresh()
    assert held(file) == [False, True, False]


@pytest.mark.parametrize("broken", ["", "short", None], ids=["empty", "short", "gone"])
def test_a_file_that_breaks_leaves_its_tokens_in_force_and_is_logged_once(
    path: Path, broken: str | None
) -> None:
    file = TokenFile(write(path, FIRST))
    if broken is None:
        path.unlink()
    else:
        write(path, broken)
    with capture_logs() as logs:
        file.refresh()
        file.refresh()
    assert held(file) == [True, False, False]
    assert [(line["log_level"], line["files"]) for line in logs] == [("error", [str(path)])]
    write(path, SECOND)
    file.refresh()
    assert held(file) == [False, True, False]


def test_a_file_that_has_not_changed_is_not_read(path: Path) -> None:
    file = TokenFile(write(path, FIRST))
    with capture_logs() as logs:
        file.refresh()
    assert logs == []


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (["Bearer abc"], "abc"),
        (["bearer  abc "], "abc"),
        (["Bearer"], ""),
        (["Basic abc"], None),
        (["abc"], None),
        ([], None),
        (["Bearer abc", "Bearer abc"], None),
    ],
)
def test_the_token_of_a_request(authorization: list[str], expected: str | None) -> None:
    assert bearer(authorization) == expected
