"""Whose request it is: the credentials of a request come in, the name of its tenant goes out, or a
refusal.

Nothing that a sender writes into its telemetry has a say in this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pathgauge.collector.receivers.auth.tokens import TokenFile, bearer, holds


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request brings along."""

    authorization: tuple[str, ...] = ()
    """The values of its Authorization headers."""
    client_names: tuple[str, ...] | None = None
    """DNS names and URIs of the verified client certificate; `None` without one."""


class RefusedError(Exception):
    """Credentials that are not good enough, for good."""

    def __init__(self, kind: Literal["unauthenticated", "forbidden"], message: str) -> None:
        super().__init__(message)
        self.kind: Literal["unauthenticated", "forbidden"] = kind


Authenticate: TypeAlias = Callable[[Credentials], str]
"""Gives the tenant of a request. Raises `RefusedError`."""


def anonymous(_: Credentials) -> str:
    """The tenant of everybody where nobody has to say who they are."""
    return ""


class Tenants:
    """The tokens and the certificates of all tenants."""

    def __init__(self, tokens: Mapping[str, TokenFile], client_names: Mapping[str, str]) -> None:
        """`tokens` are by tenant, `client_names` map the name in a certificate to its tenant."""
        self._tokens = tokens
        self._client_names = client_names

    def authenticate(self, credentials: Credentials) -> str:
        """The tenant; a token decides before a certificate, as it says more. Raises `RefusedError`."""
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
        # A list, not a generator: every tenant is looked at, so that the time tells nothing of who
        # it is.
        found = [tenant for tenant, file in self._tokens.items() if holds(file.digests, token)]
        if len(found) != 1:
            raise RefusedError("unauthenticated", "found a token that is not known here")
        return found[0]

    def _of_certificate(self, names: tuple[str, ...]) -> str:
        found = {self._client_names[name] for name in names if name in self._client_names}
        if len(found) != 1:
            raise RefusedError("forbidden", "found a client certificate that stands for no tenant")
        return found.pop()
