"""Mistakes in the configuration of tokens, certificates and endpoints: each prevents the start,
with its position in the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pathgauge.collector import config
from pathgauge.collector.cli import app
from pathgauge.collector.config import Config
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.receivers.auth.access import Access, load_access
from pathgauge.collector.receivers.auth.tenants import Credentials, RefusedError
from support.certificates import Authority, locked

A, B = "token-of-team-a-0123", "token-of-team-b-0123"
TLS = {"cert_file": "server.pem", "key_file": "server.key"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority()
    authority.write_server(folder)
    authority.write_server(folder, "other")
    authority.write_ca(folder)
    (folder / "broken.pem").write_text(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    )
    (folder / "noise").write_bytes(b"\xff\xfe noise")
    (folder / "locked.key").write_bytes(locked((folder / "server.key").read_bytes()))
    return folder


@pytest.fixture
def folder(certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with certificates and the token files `a`, `b`, and `both`."""
    monkeypatch.chdir(tmp_path)
    for file in certificates.iterdir():
        (tmp_path / file.name).symlink_to(file)
    for name, text in (("a", A), ("b", B), ("both", f"{A}\n{B}"), ("short", "x")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    return tmp_path


def written(path: str, value: Any) -> Any:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


def laid(*parts: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            found[key] = laid(found[key], value) if isinstance(found.get(key), dict) else value
    return found


def load(*parts: dict[str, Any]) -> Config:
    file = Path("pathgauge.yaml")
    file.write_text(yaml.safe_dump(laid(*parts), sort_keys=False))
    return config.load(file, {})


def problems(*parts: dict[str, Any]) -> list[str]:
    loaded = load(*parts)
    with pytest.raises(ConfigError) as caught:
        load_access(loaded)
    return [
        f"{problem.position and problem.position.line}: {str(problem).partition(': ')[2]}"
        for problem in caught.value.problems
    ]


GRPC, HTTP, METRICS = (
    "receivers.otlp.protocols.grpc",
    "receivers.otlp.protocols.http",
    "exporters.prometheus",
)
TEAM_A = written("auth.tenants.team-a", {"token_file": "a"})


@pytest.mark.parametrize("server", [GRPC, HTTP, METRICS])
@pytest.mark.parametrize(
    ("tls", "key", "problem"),
    [
        (
            TLS | {"cert_file": "gone.pem"},
            "cert_file",
            "found 'gone.pem', which cannot be read: No such file or directory; expected a file",
        ),
        (
            TLS | {"cert_file": "noise"},
            "cert_file",
            "noise: found no readable certificate, expected PEM",
        ),
        (
            TLS | {"cert_file": "server.key"},
            "cert_file",
            "server.key: found no readable certificate, expected PEM",
        ),
        (
            TLS | {"cert_file": "broken.pem"},
            "cert_file",
            "broken.pem: found no readable certificate, expected PEM",
        ),
        (
            TLS | {"key_file": "."},
            "key_file",
            "found '.', which cannot be read: Is a directory; expected a file",
        ),
        (
            TLS | {"key_file": "noise"},
            "key_file",
            (
                "noise: found no key that is readable without a password, expected the key of"
                " server.pem in PEM"
            ),
        ),
        (
            TLS | {"key_file": "locked.key"},
            "key_file",
            (
                "locked.key: found no key that is readable without a password, expected the key of"
                " server.pem in PEM"
            ),
        ),
        (
            TLS | {"key_file": "other.key"},
            "key_file",
            (
                "other.key: found the key of another certificate, expected the key of server.pem"
                " in PEM"
            ),
        ),
        (
            TLS | {"client_ca_file": "noise"},
            "client_ca_file",
            "noise: found no readable certificate, expected PEM",
        ),
    ],
)
def test_a_certificate_that_cannot_be_used_is_named(
    folder: Path, server: str, tls: dict[str, str], key: str, problem: str
) -> None:
    line = len(server.split(".")) + 2 + list(tls).index(key)
    assert problems(written(f"{server}.tls", tls)) == [f"{line}: {server}.tls.{key}: {problem}"]


def test_paths_are_relative_to_the_configuration(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(written(f"{GRPC}.tls", TLS), TEAM_A)
    elsewhere = loaded.with_changes({})
    monkeypatch.chdir("/")
    elsewhere._folder = folder
    assert list(load_access(elsewhere).tls) == ["grpc"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param(
            [written("auth.tenants.team-a.token_file", "gone")],
            [
                "4: auth.tenants.team-a.token_file: found 'gone', which cannot be read: No such"
                " file or directory; expected a file"
            ],
            id="missing",
        ),
        pytest.param(
            [written(f"{METRICS}.token_file", "short")],
            [
                "3: exporters.prometheus.token_file: short:1: found a token of 1 characters,"
                " expected at least 16"
            ],
            id="short",
        ),
        pytest.param(
            [TEAM_A, written("auth.tenants.team-b.token_file", "both")],
            [
                "6: auth.tenants.team-b.token_file: found a token of"
                " auth.tenants.team-a.token_file, expected each in one file"
            ],
            id="of two tenants",
        ),
        pytest.param(
            [TEAM_A, written(f"{METRICS}.token_file", "a")],
            [
                "4: auth.tenants.team-a.token_file: found a token of"
                " exporters.prometheus.token_file, expected each in one file"
            ],
            id="of a tenant and the metrics",
        ),
        pytest.param(
            [written("auth.tenants.team-a.client_names", ["x"])],
            [
                "5: auth.tenants.team-a.client_names: found names, expected a receiver that asks"
                " for certificates: tls.client_ca_file"
            ],
            id="names without certificates",
        ),
        pytest.param(
            [
                written(f"{HTTP}.tls", TLS | {"client_ca_file": "clients-ca.pem"}),
                written(
                    "auth.tenants",
                    {"team-a": {"client_names": ["x"]}, "team-b": {"client_names": ["y", "x"]}},
                ),
            ],
            [
                "17: auth.tenants.team-b.client_names[1]: found 'x', which stands for 'team-a',"
                " expected one tenant for a name"
            ],
            id="one name for two tenants",
        ),
    ],
)
def test_a_mistake_about_credentials_is_named(
    folder: Path, parts: list[dict[str, Any]], expected: list[str]
) -> None:
    assert problems(*parts) == expected


def test_all_mistakes_are_named_at_once(folder: Path) -> None:
    wrong = [
        written(server, {"endpoint": "0.0.0.0:0", "tls": TLS | {"key_file": "gone"}})
        for server in (GRPC, HTTP)
    ]
    found = problems(*wrong, written(f"{METRICS}.token_file", "gone"))
    assert [line.split(": ")[1] for line in found] == [
        f"{GRPC}.endpoint",
        f"{GRPC}.tls.key_file",
        f"{HTTP}.endpoint",
        f"{HTTP}.tls.key_file",
        f"{METRICS}.token_file",
    ]


REACHABLE = [
    "0.0.0.0:0",
    "[::]:0",
    "10.0.0.7:4317",
    "collector.internal:4317",
    "[::ffff:10.0.0.7]:1",
    "localhost.example.com:1",
]
LOOPBACK = ["127.0.0.1:0", "127.8.9.1:0", "[::1]:0", "localhost:0"]
MUTUAL = {"tls": TLS | {"client_ca_file": "clients-ca.pem"}}


@pytest.mark.parametrize("endpoint", REACHABLE)
@pytest.mark.parametrize(
    ("server", "remedy"), [(GRPC, "auth.tenants"), (HTTP, "auth.tenants"), (METRICS, "token_file")]
)
def test_a_reachable_endpoint_without_credentials_is_refused(
    folder: Path, server: str, remedy: str, endpoint: str
) -> None:
    line = len(server.split(".")) + 1
    expected = (
        f"found {endpoint}, which other machines can reach without credentials; expected"
        f" {remedy} or tls.client_ca_file"
    )
    assert problems(written(server, {"endpoint": endpoint})) == [
        f"{line}: {server}.endpoint: {expected}, or else insecure_bind: true"
    ]


@pytest.mark.parametrize("server", [GRPC, HTTP, METRICS])
@pytest.mark.parametrize("endpoint", LOOPBACK)
def test_loopback_needs_no_credentials(folder: Path, server: str, endpoint: str) -> None:
    assert load_access(load(written(server, {"endpoint": endpoint}))).warnings == ()


@pytest.mark.parametrize(
    ("server", "other"),
    [
        (GRPC, written("auth.tenants.team-a.token_file", "a")),
        (HTTP, written("auth.tenants.team-a.token_file", "a")),
        (METRICS, written(f"{METRICS}.token_file", "a")),
        (GRPC, written(GRPC, MUTUAL)),
        (HTTP, written(HTTP, MUTUAL)),
        (METRICS, written(METRICS, MUTUAL)),
    ],
)
def test_a_reachable_endpoint_with_credentials_is_opened(
    folder: Path, server: str, other: dict[str, Any]
) -> None:
    load_access(load(written(server, {"endpoint": "0.0.0.0:0"}), other))


@pytest.mark.parametrize(
    "other",
    [written(f"{GRPC}.tls", TLS), written(f"{METRICS}.token_file", "a"), written(HTTP, MUTUAL)],
    ids=["a certificate of its own", "tokens of the metrics", "client certificates elsewhere"],
)
def test_what_tells_nobody_who_the_caller_is_does_not_open_an_endpoint(
    folder: Path, other: dict[str, Any]
) -> None:
    assert len(problems(written(GRPC, {"endpoint": "0.0.0.0:0"}), other)) == 1


def test_insecure_bind_opens_everything_and_warns(folder: Path) -> None:
    exposed = load(written(GRPC, {"endpoint": "0.0.0.0:0"}))
    warning = f"{GRPC}: insecure_bind admits everybody who can reach 0.0.0.0:0"
    assert load_access(exposed, insecure_bind=True).warnings == (warning,)
    assert load_access(exposed.with_changes({"insecure_bind": True})).warnings == (warning,)


def test_tokens_that_cross_the_network_in_plain_text_are_a_warning(folder: Path) -> None:
    here = written(GRPC, {"endpoint": "0.0.0.0:0"})
    warning = (
        f"{GRPC}: tokens for 0.0.0.0:0 cross the network in plain text, unless TLS ends in front"
        " of it"
    )
    assert load_access(load(here, TEAM_A)).warnings == (warning,)
    assert load_access(load(here, TEAM_A, written(f"{GRPC}.tls", TLS))).warnings == ()


@pytest.mark.parametrize("command", ["serve", "validate"])
def test_the_commands_refuse_to_bind_in_plain_words(folder: Path, command: str) -> None:
    load(written(GRPC, {"endpoint": "0.0.0.0:4317"}), {"store": "memory"})
    result = CliRunner().invoke(app, [command, "--config", "pathgauge.yaml"])
    assert result.exit_code == 2
    assert (
        result.output
        == f"pathgauge: pathgauge.yaml:5:19: {GRPC}.endpoint: found 0.0.0.0:4317, which other"
        " machines can reach without credentials; expected auth.tenants or tls.client_ca_file,"
        " or else insecure_bind: true\n"
    )


def test_the_option_of_the_command_lets_it_bind(folder: Path) -> None:
    load(written(GRPC, {"endpoint": "0.0.0.0:4317"}))
    result = CliRunner().invoke(app, ["validate", "--config", "pathgauge.yaml", "--insecure-bind"])
    assert (result.exit_code, "insecure_bind admits everybody" in result.output) == (0, True)


def asked(access: Access, *authorization: str, names: tuple[str, ...] | None = None) -> str:
    try:
        return access.authenticate(Credentials(authorization, names))
    except RefusedError as refusal:
        return refusal.kind


@pytest.fixture
def access(folder: Path) -> Access:
    tenants = {
        "team-a": {"token_file": "a", "client_names": ["agents.team-a.internal"]},
        "team-b": {
            "token_file": "b",
            "client_names": ["spiffe://example.org/team-b", "agents.team-b.internal"],
        },
    }
    return load_access(load(written("auth.tenants", tenants), written(GRPC, MUTUAL)))


@pytest.mark.parametrize(
    ("authorization", "names", "expected"),
    [
        pytest.param((), None, "unauthenticated", id="nothing"),
        pytest.param((f"Bearer {A}",), None, "team-a", id="token"),
        pytest.param((f"bearer {B}",), None, "team-b", id="token of another"),
        pytest.param(("Bearer x",), None, "unauthenticated", id="bad token"),
        pytest.param((A,), None, "unauthenticated", id="no scheme"),
        pytest.param((f"Basic {A}",), None, "unauthenticated", id="another scheme"),
        pytest.param((f"Bearer {A}", f"Bearer {A}"), None, "unauthenticated", id="twice"),
        pytest.param((), ("agents.team-a.internal",), "team-a", id="certificate"),
        pytest.param(
            (),
            ("x", "spiffe://example.org/team-b", "agents.team-b.internal"),
            "team-b",
            id="certificate with more names",
        ),
        pytest.param(
            (),
            ("agents.team-a.internal", "agents.team-b.internal"),
            "forbidden",
            id="certificate of two tenants",
        ),
        pytest.param((), ("AGENTS.team-c.internal",), "forbidden", id="certificate of nobody"),
        pytest.param((), (), "forbidden", id="certificate without a name"),
        pytest.param(
            (f"Bearer {B}",),
            ("agents.team-a.internal",),
            "team-b",
            id="the token goes before the certificate",
        ),
        pytest.param(
            ("Bearer x",),
            ("agents.team-a.internal",),
            "unauthenticated",
            id="a bad token spoils a good certificate",
        ),
    ],
)
def test_credentials_stand_for_a_tenant(
    access: Access, authorization: tuple[str, ...], names: tuple[str, ...] | None, expected: str
) -> None:
    assert asked(access, *authorization, names=names) == expected


def test_a_token_never_comes_to_stand_for_two_tenants(access: Access, folder: Path) -> None:
    (folder / "a").write_text(f"{A}\n{B}")
    access.refresh()
    assert [asked(access, f"Bearer {token}") for token in (A, B)] == ["team-a", "team-b"]


def test_without_auth_everybody_is_one_tenant(folder: Path) -> None:
    assert asked(load_access(load({})), "Bearer anything") == ""
