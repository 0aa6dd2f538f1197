"""Finds the tenant of a request by its credentials, never by the content of its telemetry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pathgauge.collector.receivers.auth.tokens import TokenFile, bearer, holds


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request."""

    authorization: tuple[str, ...] = ()
    """The values of its Authorization headers."""
    client_names: tuple[str, ...] | None = None
    """DNS names and URIs of the verified client certificate; `None` without one."""


class RefusedError(Exception):
    """The credentials are not valid; a retry would not help."""

    def __init__(self, kind: Literal["unauthenticated", "forbidden"], message: str) -> None:
        super().__init__(message)
        self.kind: Literal["unauthenticated", "forbidden"] = kind


Authenticate: TypeAlias = Callable[[Credentials], str]
"""Returns the tenant of a request. Raises `RefusedError`."""


def anonymous(_: Credentials) -> str:
    """The tenant of all requests when no credentials are configured."""
    return ""


class Tenants:
    """The tokens and the certificates of all tenants."""

    def __init__(self, tokens: Mapping[str, TokenFile], client_names: Mapping[str, str]) -> None:
        """`tokens` maps tenants to token files, `client_names` certificate names to tenants."""
        self._tokens = tokens
        self._client_names = client_names

    def authenticate(self, credentials: Credentials) -> str:
        """The tenant of a request. A token takes precedence over a certificate, because it is more
        specific. Raises `RefusedError`.
        """
        if credentials.authorization:
            return self._of_token(bearer(credentials.authorization))
        if credentials.client_names is None:
            raise RefusedError(
                "unauthenticated", "found no credentials, expected Authorization: Bearer <token>"
            )
        return self._of_certificate(credentials.client_names)

    def _of_token(self, token: str | None) -> str:
        if token is None:
            raise RefusedError(
                "unauthenticated", "found other credentials, expected Authorization: Bearer <token>"
            )
        # A list, not a generator: all tenants are checked, so that the time does not reveal which
        # one matches.
        found = [tenant for tenant, file in self._tokens.items() if holds(file.digests, token)]
        if len(found) != 1:
            raise RefusedError("unauthenticated", "found an unknown token")
        return found[0]

    def _of_certificate(self, names: tuple[str, ...]) -> str:
        found = {self._client_names[name] for name in names if name in self._client_names}
        if len(found) != 1:
            raise RefusedError("forbidden", "found a client certificate without a tenant")
        return found.pop()
