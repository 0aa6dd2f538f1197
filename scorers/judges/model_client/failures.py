"""Classifies failed calls: the reason of the score, and whether to retry."""

from __future__ import annotations

from typing import Literal

from pathgauge.scorers.types import Reason

_RETRYABLE = (408, 409, 425, 429)
"""Statuses below 500 that ask the client to try again later."""

ServerState = Literal["up", "down", "unknown"]
"""What a call showed about the server."""


class CallError(Exception):
    """One call failed. The message contains nothing of the question or the answer."""

    def __init__(
        self,
        reason: Reason,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        server: ServerState = "up",
        may_be_charged: bool = False,
    ) -> None:
        """`code` is a metric label. `may_be_charged`: the server may have generated tokens."""
        super().__init__(message)
        self.reason: Reason = reason
        self.code = code
        self.retryable = retryable
        self.retry_after = retry_after
        """Seconds from the `Retry-After` header; `None`: no header."""
        self.server: ServerState = server
        self.may_be_charged = may_be_charged


def of_status(status: int, retry_after: float | None, error_code: object) -> CallError:
    """An HTTP error; `error_code` is the code in the error body, if any."""
    code = str(status)
    if status >= 500:
        return CallError(
            "judge_unavailable",
            code,
            f"the server failed: HTTP {status}",
            retryable=True,
            retry_after=retry_after,
            server="down",
        )
    if status in _RETRYABLE:
        return CallError(
            "judge_unavailable",
            code,
            f"the server accepts no requests at the moment: HTTP {status}",
            retryable=True,
            retry_after=retry_after,
            server="unknown",
        )
    if 300 <= status < 400:
        return CallError(
            "judge_rejected", code, f"the server redirects, which is not followed: HTTP {status}"
        )
    if error_code == "content_filter":
        return CallError(
            "judge_refused", code, "a content filter of the server refused the question"
        )
    return CallError("judge_rejected", code, f"the server rejected the request: HTTP {status}")


def timed_out() -> CallError:
    """No answer within the timeout."""
    return CallError(
        "judge_timeout",
        "timeout",
        "no answer within the timeout",
        retryable=True,
        server="down",
        may_be_charged=True,
    )


def not_connected() -> CallError:
    """No connection could be made."""
    return CallError(
        "judge_unavailable",
        "connection",
        "no connection to the server",
        retryable=True,
        server="down",
    )


def connection_lost() -> CallError:
    """The connection ended before the answer was complete."""
    return CallError(
        "judge_unavailable",
        "connection",
        "the connection to the server was lost",
        retryable=True,
        server="down",
        may_be_charged=True,
    )


def address_refused() -> CallError:
    """The server is at an address that is not allowed."""
    message = (
        "the server is at a private, loopback or link-local address, which its provider does not"
        " allow"
    )
    return CallError("judge_rejected", "address", message)


def too_large(max_bytes: int) -> CallError:
    """The response is too large or compressed."""
    return CallError(
        "judge_malformed",
        "too_large",
        f"the response has more than {max_bytes} bytes, or is compressed",
        may_be_charged=True,
    )


def not_a_completion() -> CallError:
    """The response is not a chat completion."""
    return CallError(
        "judge_malformed",
        "200",
        "the response is not a chat completion",
        may_be_charged=True,
    )
