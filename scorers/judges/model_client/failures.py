"""Classifies failed calls: the reason of the score, and whether to retry."""

from __future__ import annotations

from typing import Literal

from pathgauge.scorers.judges.model_client.accepted_parameters import Parameter
from pathgauge.scorers.types import Reason

BAD_REQUEST = (400, 422)
"""Statuses of a server that does not accept the parameters of a request."""
_RETRYABLE = (408, 409, 425, 429)
"""Statuses below 500 that ask the client to try again later."""

ServerState = Literal["up", "down", "unknown"]
"""What a call showed about the server."""


class CallError(Exception):
    """One call failed. The message is one line, without credentials and judged content."""

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
        self.refused: Parameter | None = None
        """The request parameter that the server does not support."""


def of_status(
    status: int, retry_after: float | None, error_code: object, text: str = ""
) -> CallError:
    """An HTTP error; `error_code` is the code in the error body, if any, and `text` its message."""
    code = str(status)
    found = _with_text(f"HTTP {status}", text)
    if status >= 500:
        return CallError(
            "judge_unavailable",
            code,
            f"the server failed: {found}",
            retryable=True,
            retry_after=retry_after,
            server="down",
        )
    if status in _RETRYABLE:
        return CallError(
            "judge_unavailable",
            code,
            f"the server accepts no requests at the moment: {found}",
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
            "judge_refused",
            code,
            _with_text("a content filter of the server refused the question", text),
        )
    return CallError("judge_rejected", code, f"the server rejected the request: {found}")


def _with_text(message: str, text: str) -> str:
    return f"{message}: {text}" if text else message


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


def not_a_completion(text: str = "") -> CallError:
    """The response is not a chat completion; `text` is the error message in it, if any."""
    return CallError(
        "judge_malformed",
        "200",
        _with_text("the response is not a chat completion", text),
        may_be_charged=True,
    )
