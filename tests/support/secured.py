"""Kafka and PostgreSQL as in production: TLS with certificates of an own CA, passwords, and in
Kafka no right that was not given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support import kafka, postgres
from support.certificates import Authority, pkcs8
from support.documented_rights import Right
from support.ports import free_port
from support.running import PATIENCE_S


@dataclass(frozen=True)
class Services:
    """A running Kafka and a running PostgreSQL."""

    broker: kafka.Broker
    database: postgres.Server
    address: str
    """Of the listener of Kafka with TLS."""
    ca: Path
    """Which has signed the certificates of both."""

    def add_user(self, name: str, password: str) -> None:
        """Add a user without rights to Kafka."""
        from confluent_kafka.admin import (  # noqa: PLC0415
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        user = UserScramCredentialUpsertion(name, info, password=password.encode())
        admin = self.broker.admin()
        for added in admin.alter_user_scram_credentials([user]).values():
            added.result(PATIENCE_S)

    def grant(self, rights: Iterable[Right]) -> None:
        """Give these rights."""
        from confluent_kafka.admin import (  # noqa: PLC0415
            AclBinding,
            AclOperation,
            AclPermissionType,
            ResourcePatternType,
            ResourceType,
        )

        bindings = [
            AclBinding(
                ResourceType[right.kind.upper()],
                right.name,
                ResourcePatternType.LITERAL,
                right.principal,
                "*",
                AclOperation[re.sub(r"(?<=.)(?=[A-Z])", "_", right.operation).upper()],
                AclPermissionType.ALLOW,
            )
            for right in rights
        ]
        admin = self.broker.admin()
        for granted in admin.create_acls(bindings).values():
            granted.result(PATIENCE_S)

    def host(self) -> str:
        """Host and port of PostgreSQL, in a connection string."""
        return f"host=localhost port={self.database.port}"


@contextmanager
def running_services(folder: Path) -> Iterator[Services]:
    """Both, with certificates in `folder`. Skips the test if one is not installed."""
    authority, address = Authority(), f"localhost:{free_port()}"
    ca, keystore = folder / "ca.pem", folder / "keystore.pem"
    ca.write_bytes(authority.certificate)
    issued = authority.write_server(folder)
    certificate, key = folder / issued["cert_file"], folder / issued["key_file"]
    keystore.write_bytes(pkcs8(key.read_bytes()) + certificate.read_bytes())
    with (
        kafka.running_broker(kafka.Secured(address, keystore)) as broker,
        postgres.server((certificate, key)) as database,
    ):
        yield Services(broker, database, address, ca)
