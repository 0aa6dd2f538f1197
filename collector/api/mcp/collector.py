"""Asks a running collector over its HTTP API."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

import requests
from pydantic import ValidationError

from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.api.models import Model, Problem, Results

MAX_BYTES = 8 << 20
"""Of an answer of the collector."""
_MAX_DETAIL = 500
_HINTS = {404: ", and in a cluster the process of the role gauge"}
"""What else a status may mean: other processes of a cluster have no API."""
_TIMEOUT_S = (5.0, 30.0)
"""For connecting, and for each part of the answer."""

ModelT = TypeVar("ModelT", bound=Model)
Parameter: TypeAlias = str | float | Sequence[str] | None
"""Of a question. Several values are sent one by one, `None` not at all."""


class OptionError(ValueError):
    """An option of the command cannot be used."""


class CollectorError(Exception):
    """The collector has not answered the question; the text says why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        """The HTTP status; 503 if the collector cannot be reached."""


@dataclass(frozen=True, slots=True)
class Collector:
    """The collector at an address."""

    url: str
    ca_file: Path | None = None
    """Certificates that are trusted instead of those of the system."""

    def __post_init__(self) -> None:
        """Raises `OptionError` unless it is the address of an HTTP server."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise OptionError(
                f"--url: found {self.url!r}, expected a URL such as http://127.0.0.1:9464"
            )

    def check(self, token: str | None) -> None:
        """Raises `CollectorError` unless the token opens the API."""
        self.get(Results, token, ("results",), {"limit": 1})

    def get(
        self,
        model: type[ModelT],
        token: str | None,
        path: tuple[str, ...],
        parameters: Mapping[str, Parameter] | None = None,
    ) -> ModelT:
        """The answer to a question. Parameters that are `None` are left out. Raises
        `CollectorError`.
        """
        address = "/".join((self.url.rstrip("/") + PREFIX, *(quote(one, "") for one in path)))
        status, media_type, body = self._request(address, token, parameters or {})
        if status == 200:
            with contextlib.suppress(ValidationError):
                return model.model_validate_json(body)
        elif media_type == "application/problem+json":
            with contextlib.suppress(ValidationError):
                detail = Problem.model_validate_json(body).detail
                raise CollectorError(status, detail[:_MAX_DETAIL])
        raise CollectorError(
            502,
            f"{self.url} answered /{'/'.join(path)[:100]} with status {status} and no known"
            f" content: is it a collector of this version{_HINTS.get(status, '')}?",
        )

    def _request(
        self, address: str, token: str | None, parameters: Mapping[str, Parameter]
    ) -> tuple[int, str, bytes]:
        """Status, media type and body."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        verify = True if self.ca_file is None else str(self.ca_file)
        try:
            with requests.Session() as session:
                session.trust_env = False  # a password of ~/.netrc must not replace the token
                with session.get(
                    address,
                    params=parameters,
                    headers=headers,
                    verify=verify,
                    timeout=_TIMEOUT_S,
                    allow_redirects=False,
                    stream=True,
                ) as answer:
                    media_type = answer.headers.get("content-type", "").partition(";")[0]
                    return answer.status_code, media_type, _body(answer)
        except (requests.RequestException, OSError) as error:
            raise CollectorError(
                503, f"cannot ask the collector at {self.url}: {_reason(error)}"
            ) from error


def _reason(error: BaseException) -> str:
    """What the system says, such as `Connection refused`, or why a certificate is not accepted,
    else the type of the error. Other errors of TLS say more than is of use.
    """
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted, {found.verify_message}: see --ca-file"
        if isinstance(found, OSError) and found.strerror and not isinstance(found, ssl.SSLError):
            return found.strerror
        found = found.__cause__ or found.__context__
    return type(error).__name__


def _body(answer: requests.Response) -> bytes:
    body = bytearray()
    for chunk in answer.iter_content(1 << 16):
        body += chunk
        if len(body) > MAX_BYTES:
            raise CollectorError(
                502, f"the answer is longer than {MAX_BYTES >> 20} MiB: ask for less"
            )
    return bytes(body)
