"""Reads and checks the files of `exporters.otlp.tls`. Otherwise the first export that fails would
tell what no connection can use.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from pathgauge.collector.config.plugins.sinks import SinkContext
from pathgauge.collector.sinks.otlp_events.options import OtlpEventsOptions

_KEYS = ("ca_file", "cert_file", "key_file")
_TOO_WEAK = frozenset({"EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"})
_NO_PASSWORD = ""
"""Without it, OpenSSL would ask for the password of an encrypted key on the terminal."""


def tls_files(options: OtlpEventsOptions, context: SinkContext) -> dict[str, Path | None]:
    """The files by their keys. Raises `ConfigError`."""
    files = {key: _readable(options, context, key) for key in _KEYS}
    for key in ("ca_file", "cert_file"):
        if (file := files[key]) is not None and not _has_certificates(file):
            found = f"found {getattr(options.tls, key)!r}, a file without a readable certificate"
            raise context.mistake(("tls", key), f"{found}, expected PEM")
    if (certificate := files["cert_file"]) is not None:
        try:
            ssl.create_default_context().load_cert_chain(
                certificate, files["key_file"], password=_NO_PASSWORD
            )
        except (ssl.SSLError, OSError) as error:
            if isinstance(error, ssl.SSLError) and error.reason in _TOO_WEAK:
                found = f"found {options.tls.cert_file!r}, a certificate that OpenSSL refuses"
                expected = f"expected one with a stronger key and signature ({error.reason})"
                raise context.mistake(("tls", "cert_file"), f"{found}, {expected}") from None
            found = f"found {options.tls.key_file!r}, {_reason(error)}"
            expected = f"expected the key of {options.tls.cert_file} in PEM, without a password"
            raise context.mistake(("tls", "key_file"), f"{found}, {expected}") from None
    return files


def _readable(options: OtlpEventsOptions, context: SinkContext, key: str) -> Path | None:
    name: str | None = getattr(options.tls, key)
    if name is None:
        return None
    file = context.folder / name
    try:
        file.read_bytes()
    except OSError as error:
        raise context.mistake(("tls", key), f"found {name!r}: {error.strerror}") from None
    return file


def _has_certificates(file: Path) -> bool:
    try:
        content = file.read_bytes().decode("ascii")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return "the key of another certificate"
    return "a file without a readable key"
