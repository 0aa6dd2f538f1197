"""Asks servers over HTTP: with credentials, a limit on the size of answers, and a few retries.

Redirects are not followed, because they would carry the credentials elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import requests

from pathgauge.collector.service.backfill.history import SourceError

MAX_ANSWER_BYTES = 256 << 20
_TIMEOUT_S = (10.0, 120.0)
"""For connecting, and for each part of the answer."""
_ATTEMPTS = 4
_PAUSE_S = 1.0
_BUSY = frozenset({429, 502, 503, 504})
_MAX_DETAIL = 300


class NotFoundError(SourceError):
    """The server has nothing by that name."""


class HttpClient:
    """Asks one server; for any thread."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        ca_file: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`headers` hold the credentials. `ca_file`: certificates that are trusted instead of those
        of the system.
        """
        self.url = url
        self._headers = headers
        self._verify = ca_file or True
        self._sleep = sleep
        self._local = threading.local()
        self._sessions: list[requests.Session] = []

    def json(self, path: str, parameters: Mapping[str, str | int]) -> Any:
        """The JSON answer to a GET; `None` for 404. Raises `SourceError`."""
        try:
            answer = self.request("GET", path, parameters)
        except NotFoundError:
            return None
        return self._parsed(path, answer)

    def request(
        self, method: str, path: str, parameters: Mapping[str, str | int], body: bytes = b""
    ) -> bytes:
        """The answer. Raises `SourceError`; for 404 `NotFoundError`, with what the server says."""
        for attempt in range(_ATTEMPTS):
            try:
                status, answer = self._once(method, path, parameters, body)
            except requests.RequestException as error:
                status, answer = 0, _reason(error).encode()
            if status == requests.codes.ok:
                return answer
            if status and status not in _BUSY:
                break
            if attempt + 1 < _ATTEMPTS:
                self._sleep(_PAUSE_S * 2**attempt)
        detail = answer[:_MAX_DETAIL].decode("utf-8", "replace").strip()
        found = f"status {status}" if status else "no answer"
        kind = NotFoundError if status == requests.codes.not_found else SourceError
        raise kind(f"{self.url}{path}: found {found} ({detail}), expected traces")

    def close(self) -> None:
        """End the connections."""
        for session in self._sessions:
            session.close()

    def _session(self) -> requests.Session:
        """That of this thread: sessions are not made for several."""
        known: requests.Session | None = getattr(self._local, "session", None)
        if known is None:
            known = self._local.session = requests.Session()
            known.trust_env = False  # a password of ~/.netrc must not replace the credentials
            known.headers.update(self._headers)
            known.verify = self._verify
            self._sessions.append(known)
        return known

    def _once(
        self, method: str, path: str, parameters: Mapping[str, str | int], body: bytes
    ) -> tuple[int, bytes]:
        with self._session().request(
            method,
            self.url + path,
            params=dict(parameters),
            data=body or None,
            timeout=_TIMEOUT_S,
            allow_redirects=False,
            stream=True,
        ) as response:
            parts, size = [], 0
            for part in response.iter_content(1 << 16):
                parts.append(part)
                size += len(part)
                if size > MAX_ANSWER_BYTES:
                    text = f"found an answer of more than {MAX_ANSWER_BYTES >> 20} MiB"
                    raise SourceError(f"{self.url}{path}: {text}, expected less")
            return response.status_code, b"".join(parts)

    def _parsed(self, path: str, answer: bytes) -> Any:
        try:
            return orjson.loads(answer)
        except orjson.JSONDecodeError as error:
            found = f"found no JSON ({error.msg})"
            if not answer.strip():
                found = "found no JSON, but an empty answer"
            elif answer.lstrip().startswith(b"<"):
                found = "found no JSON, but a page; does the address lack the path of the server?"
            raise SourceError(f"{self.url}{path}: {found}") from error


def _reason(error: requests.RequestException) -> str:
    """The text without the addresses of objects."""
    cause = error.args[0] if error.args else error
    return str(getattr(cause, "reason", cause)).rpartition(": ")[2] or type(error).__name__
