"""Why a call to a model failed, and what that means for the next one."""

from __future__ import annotations

from typing import Literal

from pathgauge.scorers.types import Reason

_REPEATABLE = (408, 409, 425, 429)
"""Statuses below 500 that mean: not now."""

ServerState = Literal["up", "down", "unknown"]
"""What a failure tells about the server."""


class CallError(Exception):
    """One call failed. Its text holds nothing of what was asked and answered."""

    def __init__(
        self,
        reason: Reason,
        code: str,
        message: str,
        *,
        may_pass: bool = False,
        retry_after: float | None = None,
        server: ServerState = "up",
        uses: bool = False,
    ) -> None:
        """`code` labels counters; `may_pass`: the same call may work later; `uses`: the server may
        have worked for it, and charge it.
        """
        super().__init__(message)
        self.reason: Reason = reason
        self.code = code
        self.may_pass = may_pass
        self.retry_after = retry_after
        """Seconds that the server wants to be left alone; `None`: it did not say."""
        self.server: ServerState = server
        self.uses = uses


def of_status(status: int, retry_after: float | None, problem: object) -> CallError:
    """An answer that is none; `problem` is the code in the body of an error, where there is one."""
    code = str(status)
    if status >= 500:
        return CallError(
            "judge_unavailable",
            code,
            f"the server failed: HTTP {status}",
            may_pass=True,
            retry_after=retry_after,
            server="down",
        )
    if status in _REPEATABLE:
        text = f"the server takes no more requests: HTTP {status}"
        return CallError(
            "judge_unavailable",
            code,
            text,
            may_pass=True,
            retry_after=retry_after,
            server="unknown",
        )
    if 300 <= status < 400:
        return CallError(
            "judge_rejected", code, f"the server redirects, which is not followed: HTTP {status}"
        )
    if problem == "content_filter":
        return CallError(
            "judge_refused", code, "a content filter of the server refused the question"
        )
    return CallError("judge_rejected", code, f"the server rejected the request: HTTP {status}")


def timed_out() -> CallError:
    """No answer in time."""
    return CallError(
        "judge_timeout", "timeout", "no answer in time", may_pass=True, server="down", uses=True
    )


def not_connected() -> CallError:
    """Nobody there."""
    return CallError(
        "judge_unavailable",
        "connection",
        "no connection to the server",
        may_pass=True,
        server="down",
    )


def broken() -> CallError:
    """A connection that ended before the answer did."""
    return CallError(
        "judge_unavailable",
        "connection",
        "the connection to the server broke",
        may_pass=True,
        server="down",
        uses=True,
    )


def address_refused() -> CallError:
    """The server is at an address that is not allowed."""
    text = (
        "the server is at a private, loopback or link-local address, which its provider does not"
        " allow"
    )
    return CallError("judge_rejected", "address", text)


def too_large(most: int) -> CallError:
    """More than we read."""
    return CallError(
        "judge_malformed",
        "too_large",
        f"the server sent more than {most} bytes, or sent them compressed",
        uses=True,
    )


def not_a_completion() -> CallError:
    """Something that no such server sends."""
    return CallError(
        "judge_malformed", "200", "the server sent something else than a chat completion", uses=True
    )
