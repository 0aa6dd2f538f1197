"""A real PostgreSQL in a temporary folder, one for the test session, with a database for each test.

It syncs as in production. It can be killed and started again on the same files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shutil import copy, rmtree, which

import pytest

from support.ports import free_port
from support.running import PATIENCE_S

PASSWORD = "a-secret-of-the-tests"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "on",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
    # After `kill` one call instead of one for each file of each database.
    "recovery_init_sync_method": "syncfs",
}
_FOLDERS = [Path(f"/usr/lib/postgresql/{version}/bin") for version in range(20, 13, -1)]


class Server:
    """One PostgreSQL on a Unix socket and a loopback port."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._names = count()
        self._certified: list[str] = []
        self.port = free_port()

    def certify(self, certificate: Path, key: Path) -> None:
        """Accept TLS. Before the start."""
        owner = self._data.stat()
        for file, setting in ((certificate, "ssl_cert_file"), (key, "ssl_key_file")):
            copied = self._data / setting
            copy(file, copied)
            copied.chmod(0o600)
            os.chown(copied, owner.st_uid, owner.st_gid)
            self._certified.append(f"{setting}={copied}")
        self._certified.append("ssl=on")

    def create(self) -> None:
        """Make the files of an empty server."""
        password = self._folder / "password"
        password.write_text(PASSWORD)
        self._run(
            *(str(self._programs / "initdb"), "-D", str(self._data), "-U", "pathgauge"),
            *("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}"),
            *("--no-sync", "--locale=C.UTF-8", "--encoding=UTF8"),
        )

    def start(self) -> None:
        """Start, or start again after `kill`."""
        ends = time.monotonic() + PATIENCE_S
        while not self._is_up():
            settings = [f"{name}={value}" for name, value in _SETTINGS.items()]
            settings += [f"port={self.port}", f"unix_socket_directories={self._folder}"]
            settings += self._certified
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [
                        *(str(self._programs / "postgres"), "-D", str(self._data)),
                        *(word for setting in settings for word in ("-c", setting)),
                    ],
                    stdout=log,
                    stderr=log,
                    **_identity(),  # type: ignore[call-overload]
                )
            while self._process.poll() is None and not self._is_up():
                assert time.monotonic() < ends, (self._folder / "log").read_text()
                time.sleep(0.02)
            assert time.monotonic() < ends, (self._folder / "log").read_text()

    def kill(self) -> None:
        """End the server as a power cut would: nothing is written any more."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def restart(self) -> None:
        """Kill it, and start it again on the same files."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """End the server; its files may be removed then."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def database(self) -> str:
        """The address of a new, empty database, over the Unix socket."""
        return f"postgresql://pathgauge@/{self.named()}?host={self._folder}&port={self.port}"

    def named(self) -> str:
        """The name of a new, empty database."""
        name = f"test_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def over_tcp(self, address: str, port: int | None = None) -> str:
        """The same database over the loopback port or a link to it, where a password is needed."""
        name = address.partition("@/")[2].partition("?")[0]
        return f"postgresql://pathgauge:{PASSWORD}@127.0.0.1:{port or self.port}/{name}"

    def execute(self, statement: str) -> None:
        """Execute a statement outside of the databases of tests."""
        import psycopg  # noqa: PLC0415

        with psycopg.connect(self._administration(), autocommit=True) as connection:
            connection.execute(statement)

    def _is_up(self) -> bool:
        import psycopg  # noqa: PLC0415

        with suppress(psycopg.OperationalError), psycopg.connect(self._administration()):
            return True
        return False

    def _administration(self) -> str:
        return f"postgresql://pathgauge@/postgres?host={self._folder}&port={self.port}"

    def _run(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, **_identity())  # type: ignore[call-overload]


@contextmanager
def server(certificate: tuple[Path, Path] | None = None) -> Iterator[Server]:
    """A running server; with a certificate and its key it accepts TLS, too. Skips the test if
    PostgreSQL or psycopg is not installed.
    """
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    found = which("postgres")
    folders = [Path(found).parent] if found else [one for one in _FOLDERS if one.is_dir()]
    if not folders:
        pytest.skip("PostgreSQL is not installed")
    # Not in pytest's folder: the path of a Unix socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="pathgauge-pg-"))
    try:
        if os.getuid() == 0:
            subprocess.run(["chown", "postgres:", folder], check=True)
        running = Server(folders[0], folder)
        running.create()
        if certificate is not None:
            running.certify(*certificate)
        running.start()
        try:
            yield running
        finally:
            running.stop()
    finally:
        rmtree(folder, ignore_errors=True)


def _identity() -> dict[str, object]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    return {"user": "postgres", "group": "postgres", "extra_groups": []}
