"""Certificates for tests: names come in, files of a server or a client go out, all of one
throw-away CA.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


@dataclass(frozen=True)
class Client:
    """What somebody brings along to connect with: the CA that they trust, and perhaps a certificate
    of their own.
    """

    trusted: bytes
    certificate: bytes | None = None
    key: bytes | None = None

    def grpc_credentials(self) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(self.trusted, self.key, self.certificate)

    def context(self, folder: Path) -> ssl.SSLContext:
        """For HTTP; `folder` is for files, which Python reads keys from."""
        context = ssl.create_default_context(cadata=self.trusted.decode())
        if self.certificate is not None and self.key is not None:
            chain = folder / "client.pem"
            chain.write_bytes(self.key + self.certificate)
            context.load_cert_chain(chain)
        return context


class Authority:
    """A CA, and what it issues."""

    def __init__(self) -> None:
        self._ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.certificate = self._ca.cert_pem.bytes()

    def write_server(
        self,
        folder: Path,
        name: str = "server",
        *,
        begins: datetime | None = None,
        ends: datetime | None = None,
    ) -> dict[str, str]:
        """The files of a server on loopback; gives the keys of the configuration for them."""
        issued = self._ca.issue_cert("localhost", "127.0.0.1", not_before=begins, not_after=ends)
        (folder / f"{name}.pem").write_bytes(_chain(issued))
        (folder / f"{name}.key").write_bytes(issued.private_key_pem.bytes())
        return {"cert_file": f"{name}.pem", "key_file": f"{name}.key"}

    def write_ca(self, folder: Path, name: str = "clients-ca.pem") -> dict[str, str]:
        """The file by which a server knows the clients of this CA."""
        (folder / name).write_bytes(self.certificate)
        return {"client_ca_file": name}

    def client(self, *names: str, of: Authority | None = None) -> Client:
        """Somebody who trusts this CA, with a certificate for `names`, issued by `of` or by this
        CA.
        """
        if not names:
            return Client(self.certificate)
        issued = (of or self)._ca.issue_cert(*names)
        return Client(self.certificate, _chain(issued), issued.private_key_pem.bytes())

    def workload(self, uri: str) -> Client:
        """Somebody whose certificate has a URI for a name, as SPIFFE gives them, which trustme
        cannot write.
        """
        issuer = load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        assert isinstance(issuer, EllipticCurvePrivateKey)
        key = generate_private_key(SECP256R1())
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(x509.load_pem_x509_certificate(self.certificate).subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(
                x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=True
            )
            .sign(issuer, SHA256())
        )
        return Client(
            self.certificate, certificate.public_bytes(Encoding.PEM), _pem(key, NoEncryption())
        )


def write_weak(folder: Path) -> None:
    """A certificate `weak.pem` whose key is smaller than OpenSSL accepts by default."""
    key = generate_rsa_key(public_exponent=65537, key_size=1024)
    now, nobody = datetime.now(UTC), x509.Name([])
    certificate = (
        x509.CertificateBuilder(nobody, nobody, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, SHA256())
    )
    (folder / "weak.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "weak.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )


def pkcs8(key: bytes) -> bytes:
    """The same private key in the one form that Java reads."""
    loaded = load_pem_private_key(key, None)
    assert isinstance(loaded, EllipticCurvePrivateKey)
    return _pem(loaded, NoEncryption())


def locked(key: bytes) -> bytes:
    """The same private key under a password."""
    loaded = load_pem_private_key(key, None)
    assert isinstance(loaded, EllipticCurvePrivateKey)
    return _pem(loaded, BestAvailableEncryption(b"password"))


def _pem(key: EllipticCurvePrivateKey, encryption: KeySerializationEncryption) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def _chain(issued: trustme.LeafCert) -> bytes:
    return b"".join(blob.bytes() for blob in issued.cert_chain_pems)
