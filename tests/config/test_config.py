"""The configuration file: defaults, every kind of value, and errors."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from pathgauge.collector import config
from pathgauge.collector.config import Assembly, Canary, Config, Grpc, Http
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.documents.quantities import Endpoint
from pathgauge.collector.core.traces import Bounds
from pathgauge.scorers.types import Json


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that messages show short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(text: str, name: str = "pathgauge.yaml", **environment: str) -> Config:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return config.load(file, environment)


def message(text: str, name: str = "pathgauge.yaml") -> str:
    with pytest.raises(ConfigError) as caught:
        load(text, name)
    return str(caught.value)


def test_without_a_file_the_collector_listens_on_loopback_and_needs_no_reference() -> None:
    assert config.load().model_dump() == {
        "receivers": {
            "otlp": {
                "protocols": {
                    "grpc": {
                        "endpoint": ("127.0.0.1", 4317),
                        "max_request_bytes": 16 * 2**20,
                        "max_connections": 512,
                        "tls": None,
                    },
                    "http": {
                        "endpoint": ("127.0.0.1", 4318),
                        "max_request_bytes": 16 * 2**20,
                        "max_connections": 512,
                        "max_connections_per_peer": 64,
                        "tls": None,
                    },
                }
            }
        },
        "auth": None,
        "insecure_bind": False,
        "redaction": None,
        "references": (),
        "criteria": {"failure": None, "latency": None},
        "criteria_file": None,
        "prices": {},
        "scenario": {
            "keys": (
                "pathgauge.scenario.id",
                "test.case.id",
                "eval.scenario.id",
                "scenario.id",
                "agentevals.eval.case.id",
            ),
            "match_user_input": False,
            "expected_interval": None,
        },
        "dialects": {},
        "assembly": {
            "settle": 6.0,
            "idle": 30.0,
            "max_age": 600.0,
            "late_ttl": 300.0,
            "max_trace_spans": 10_000,
            "max_trace_bytes": 16 * 2**20,
            "max_open_bytes": 192 * 2**20,
            "max_retained_bytes": 32 * 2**20,
            "max_reading_cpu": 10.0,
        },
        "windows": {"size": 100, "max_age": 3600.0, "stale_after": 3600.0, "min_samples": 20},
        "drift": {
            "false_alarm_interval": 365.0 * 86_400,
            "margin": 0.01,
            "min_scores": 50,
            "max_series": 10_000,
            "baseline_versions": {},
            "max_agents": 100,
        },
        "conversations": {"idle": 1800.0},
        "sessions": {
            "idle": 1800.0,
            "settle": 10.0,
            "reopen": 21_600.0,
            "max_age": 86_400.0,
            "max_turns": 200,
            "max_session_bytes": 4 * 2**20,
        },
        "exporters": {
            "prometheus": {
                "endpoint": ("127.0.0.1", 9464),
                "max_series": 1500,
                "max_series_total": 5000,
                "token_file": None,
                "tls": None,
            },
            "otlp": None,
        },
        "workers": 1,
        "store": {
            "path": "pathgauge-data",
            "max_bytes": 10 * 2**30,
            "max_backlog_age": 20.0,
            "retention": 7 * 86_400.0,
        },
        "kafka": None,
        "postgres": None,
        "feedback": {
            "window": 604800.0,
            "min_kappa": 0.4,
            "min_pairs": 20,
            "labels": {},
            "scales": {},
            "pass_above": 0.5,
            "max_answers": 100_000,
        },
        "evidence": {
            "keep": "failed",
            "passed_per_scenario": 20,
            "max_bytes": 256 << 20,
            "retention": 7 * 86_400.0,
        },
        "ui": {"trace_url": None, "dashboard_url": None, "hosts": ()},
        "canary": None,
        "judge": None,
        "shadow": None,
        "logging": {"level": "info", "format": "console"},
    }


def test_the_assembler_has_the_same_defaults() -> None:
    assert asdict(Bounds()).items() >= Assembly().model_dump().items()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "# nothing",
        "receivers:\nassembly:\ncriteria:\nlogging:",
        "receivers: {otlp: {protocols: }}",
    ],
)
def test_missing_and_empty_sections_have_their_defaults(text: str) -> None:
    assert load(text) == Config()


@pytest.mark.parametrize(
    ("text", "protocols"),
    [
        ("{grpc: , http: }", (Grpc(), Http())),
        ("{http: false}", (Grpc(), None)),
        ("{grpc: false}", (None, Http())),
        ("{grpc: {endpoint: '0.0.0.0:4317'}}", (Grpc(endpoint=Endpoint("0.0.0.0", 4317)), Http())),
        ("{http: {max_request_bytes: 4MiB}}", (Grpc(), Http(max_request_bytes=4 * 2**20))),
    ],
)
def test_an_empty_protocol_is_on_as_in_the_opentelemetry_collector_and_false_is_off(
    text: str, protocols: tuple[Grpc | None, Http | None]
) -> None:
    loaded = load(f"receivers: {{otlp: {{protocols: {text}}}}}").receivers.otlp.protocols
    assert (loaded.grpc, loaded.http) == protocols


@pytest.mark.parametrize(
    ("text", "canary"),
    [
        ("canary:", Canary()),
        ("canary: {interval: 1m}", Canary(interval=60)),
        ("canary: false", None),
    ],
)
def test_the_section_switches_the_canary_on(text: str, canary: Canary | None) -> None:
    assert load(text).canary == canary


def test_environment_variables_are_replaced() -> None:
    text = (
        "exporters: {prometheus: {endpoint: '${env:HOST:-127.0.0.1}:${PORT}', max_series:"
        " '${SERIES}'}}"
    )
    prometheus = load(text, PORT="9999", SERIES="50").exporters.prometheus
    assert (prometheus.endpoint, prometheus.max_series) == (Endpoint("127.0.0.1", 9999), 50)


@pytest.mark.parametrize(
    ("limits", "total"),
    [
        ("max_series: 50", 5_000),
        ("max_series: 20000", 20_000),
        ("max_series: 20000, max_series_total: 300", 300),
        ("max_series_total: 300", 300),
    ],
)
def test_one_tenant_can_use_all_of_its_series_unless_the_total_says_otherwise(
    limits: str, total: int
) -> None:
    assert (
        load(f"exporters: {{prometheus: {{{limits}}}}}").exporters.prometheus.max_series_total
        == total
    )


def test_a_variable_switches_on_and_off() -> None:
    read = load(
        "insecure_bind: ${OPEN}\nscenario: {match_user_input: '${env:MATCH}'}",
        OPEN="true",
        MATCH="false",
    )
    assert (read.insecure_bind, read.scenario.match_user_input) == (True, False)


def test_relative_paths_are_relative_to_the_file() -> None:
    assert load("references: [refs/*.yaml]", "conf/pathgauge.yaml").folder == Path("conf")
    assert config.load().folder == Path()


ADK = """{
  "criteria": {
    "tool_trajectory_avg_score": {"threshold": 1.0, "matchType": "IN_ORDER", "ignoreArgs": true},
    "response_match_score": 0.8
  },
  "customMetrics": {"mine": {"codeConfig": {"name": "my.metric"}}}
}"""
ADK_CRITERIA = {
    "tool_trajectory_avg_score": {"threshold": 1.0, "matchType": "IN_ORDER", "ignoreArgs": True},
    "response_match_score": 0.8,
}


def test_a_test_config_of_adk_is_a_configuration() -> None:
    text = ADK.replace(
        '},\n  "customMetrics": {"mine": {"codeConfig": {"name": "my.metric"}}}', "}"
    )
    assert load(text, "test_config.json") == Config(criteria=ADK_CRITERIA)


def test_criteria_override_those_of_the_criteria_file() -> None:
    Path("conf").mkdir()
    Path("conf/test_config.json").write_text(ADK, encoding="utf-8")
    assert load("criteria_file: test_config.json", "conf/a.yaml").criteria == ADK_CRITERIA
    text = (
        "criteria_file: test_config.json\ncriteria: {tool_trajectory_avg_score: 0.5,"
        " response_match_score: false, failure: 0}"
    )
    assert load(text, "conf/b.yaml").criteria == {
        "tool_trajectory_avg_score": {
            "threshold": 0.5,
            "match_type": "IN_ORDER",
            "ignore_args": True,
        },
        "response_match_score": False,
        "failure": 0,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "receivrs: {}",
            (
                "1:1: receivrs: found an unknown key, expected one of receivers, auth,"
                " insecure_bind, redaction, references, criteria, criteria_file, prices, judge,"
                " shadow, scenario, dialects, assembly, windows, drift, conversations, sessions,"
                " exporters, workers, store, kafka, postgres, evidence, feedback, ui, canary,"
                " logging;"
                " did you mean 'receivers'?"
            ),
        ),
        (
            "receivers: {otlp: {protocols: {grcp: }}}",
            (
                "1:32: receivers.otlp.protocols.grcp: found an unknown key, expected one of grpc,"
                " http; did you mean 'grpc'?"
            ),
        ),
        (
            "receivers: {otlp: {protocols: {grpc: {endpont: x}}}}",
            (
                "1:39: receivers.otlp.protocols.grpc.endpont: found an unknown key, "
                "expected one of endpoint, max_request_bytes, max_connections, tls;"
                " did you mean 'endpoint'?"
            ),
        ),
        (
            "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: 4318",
            (
                "5:19: receivers.otlp.protocols.http.endpoint: found 4318, expected host:port, such"
                " as 127.0.0.1:4317 or 0.0.0.0:4317"
            ),
        ),
        (
            "receivers: {otlp: {protocols: {grpc: true}}}",
            "1:38: receivers.otlp.protocols.grpc: found true, expected a mapping, or false",
        ),
        (
            "receivers: {otlp: {protocols: {grpc: false, http: false}}}",
            (
                "1:31: receivers.otlp.protocols: found all protocols switched off, expected at"
                " least one that is on"
            ),
        ),
        (
            "receivers: {otlp: {protocols: {http: {max_request_bytes: 16 megabytes}}}}",
            (
                "1:58: receivers.otlp.protocols.http.max_request_bytes: found '16 megabytes',"
                " expected a size such as 16MiB"
            ),
        ),
        (
            "receivers: {otlp: {protocols: {grpc: {max_request_bytes: 2GiB}}}}",
            (
                "1:58: receivers.otlp.protocols.grpc.max_request_bytes: found '2GiB', expected less"
                " than or equal to 2147483647"
            ),
        ),
        (
            "receivers: {otlp: {protocols: {grpc: {max_connections: 2147483648}}}}",
            (
                "1:56: receivers.otlp.protocols.grpc.max_connections: found 2147483648, expected"
                " less than or equal to 2147483647"
            ),
        ),
        (
            "exporters: {prometheus: {endpoint: '127.0.0.1:4318'}}",
            (
                "1:36: exporters.prometheus.endpoint: found 127.0.0.1:4318, expected an endpoint"
                " that differs from receivers.otlp.protocols.http.endpoint"
            ),
        ),
        ("auth:", "1:6: auth.tenants: found nothing, expected this key"),
        ("auth: {tenants: {}}", "1:17: auth.tenants: found a mapping, expected at least one entry"),
        (
            "auth: {tenants: {a: }}",
            "1:21: auth.tenants.a: found no credentials, expected token_file, client_names or both",
        ),
        ("windows: {size: }", "1:17: windows.size: found null, expected a whole number from 1"),
        (
            "auth: {tenants: {a: {}}}",
            "1:21: auth.tenants.a: found no credentials, expected token_file, client_names or both",
        ),
        (
            "auth: {tenants: {a b: {token_file: x}}}",
            (
                "1:7: auth: found the tenant 'a b', expected at most 64 letters, digits, '-', '_'"
                " and '.'"
            ),
        ),
        (
            "auth: {tenants: {a: {tokens: x}}}",
            (
                "1:22: auth.tenants.a.tokens: found an unknown key, expected one of token_file,"
                " client_names; did you mean 'token_file'?"
            ),
        ),
        (
            "exporters: {prometheus: {tls: {cert_file: a}}}",
            "1:31: exporters.prometheus.tls.key_file: found nothing, expected this key",
        ),
        ("insecure_bind: 0.0.0.0", "1:16: insecure_bind: found '0.0.0.0', expected true or false"),
        ("insecure_bind: on", "1:16: insecure_bind: found 'on', expected true or false"),
        ("insecure_bind: 'TRUE'", "1:16: insecure_bind: found 'TRUE', expected true or false"),
        ("insecure_bind: 1", "1:16: insecure_bind: found 1, expected true or false"),
        (
            (
                "redaction: {content: 0.0, tenants: {a: {content: n}}}\nauth: {tenants: {a:"
                " {client_names: [x]}}}"
            ),
            (
                "1:22: redaction.content: found 0.0, expected true or false\npathgauge.yaml:1:50:"
                " redaction.tenants.a.content: found 'n', expected true or false"
            ),
        ),
        (
            "exporters: {otlp: {endpoint: 'h:1', content: on, tls: {insecure: y}}}",
            (
                "1:46: exporters.otlp.content: found 'on', expected true or"
                " false\npathgauge.yaml:1:66: exporters.otlp.tls.insecure: found 'y', expected true"
                " or false"
            ),
        ),
        (
            "scenario: {match_user_input: yes}",
            "1:30: scenario.match_user_input: found 'yes', expected true or false",
        ),
        ("references: refs/*.yaml", "1:13: references: found 'refs/*.yaml', expected a list"),
        ("references: [1]", "1:14: references[0]: found 1, expected text"),
        ("references:\n  - a\n  -", "3:4: references[1]: found null, expected text"),
        ("criteria: 0.8", "1:11: criteria: found 0.8, expected a mapping"),
        ("criteria: []", "1:11: criteria: found a list, expected a mapping"),
        (
            "criteria: [failure]",
            "1:12: criteria[0]: found 'failure', expected the keys metric and criterion, or a"
            " mapping such as {latency: 30} in place of the list",
        ),
        ("criteria_file: 7", "1:16: criteria_file: found 7, expected text"),
        ("scenario: {keys: []}", "1:18: scenario.keys: found a list, expected at least one entry"),
        (
            "scenario: {keys: test.case.id}",
            "1:18: scenario.keys: found 'test.case.id', expected a list",
        ),
        (
            "assembly: {settle: 6 seconds}",
            (
                "1:20: assembly.settle: found '6 seconds', expected a duration such as 6s, 10m or"
                " 1h30m"
            ),
        ),
        (
            "assembly: {idle: true}",
            "1:18: assembly.idle: found true, expected a duration such as 6s, 10m or 1h30m",
        ),
        (
            "assembly: {settle: 1m}",
            (
                "1:11: assembly: found settle 60s, idle 30s, max_age 600s, expected settle <= idle"
                " <= max_age"
            ),
        ),
        (
            "canary: {interval: 0.5}",
            "1:20: canary.interval: found 0.5, expected at least 1s",
        ),
        (
            "assembly: {idle: 1h}",
            (
                "1:11: assembly: found settle 6s, idle 3600s, max_age 600s, expected settle <= idle"
                " <= max_age"
            ),
        ),
        (
            "assembly: {max_open_bytes: 1MiB}",
            (
                "1:11: assembly: found max_trace_bytes 16777216, max_open_bytes 1048576, expected"
                " max_trace_bytes <= max_open_bytes"
            ),
        ),
        (
            "assembly: {max_trace_spans: 0}",
            "1:29: assembly.max_trace_spans: found 0, expected a whole number from 1",
        ),
        (
            "windows: {size: 10}",
            "1:10: windows: found min_samples 20, size 10, expected min_samples <= size",
        ),
        (
            "windows: {size: 1e3}",
            "1:17: windows.size: found 1000.0, expected a whole number from 1",
        ),
        (
            "conversations: {idle: -5}",
            "1:23: conversations.idle: found -5, expected a duration such as 6s, 10m or 1h30m",
        ),
        ("drift: off", "1:8: drift: found 'off', expected a mapping, or false"),
        (
            "drift: {false_alarm_interval: 1h}",
            "1:31: drift.false_alarm_interval: found '1h', expected at least 1d",
        ),
        ("conversations: 30m", "1:16: conversations: found '30m', expected a mapping"),
        (
            "store: memry",
            (
                "1:8: store: found 'memry', expected memory, or a mapping such as {path:"
                " pathgauge-data}"
            ),
        ),
        (
            'store: {path: "a\\0"}',
            "1:15: store.path: found 'a\\x00', expected a path without a null character",
        ),
        (
            'exporters: {otlp: {endpoint: "h:1", tls: {ca_file: "\\0"}}}',
            (
                "1:52: exporters.otlp.tls.ca_file: found '\\x00', expected a path without a null"
                " character"
            ),
        ),
        (
            "store: {max_bytes: 63MiB}",
            "1:20: store.max_bytes: found '63MiB', expected at least 64MiB",
        ),
        (
            "store: {retention: -7}",
            "1:20: store.retention: found -7, expected a duration such as 6s, 10m or 1h30m",
        ),
        (
            "logging: {level: warn}",
            (
                "1:18: logging.level: found 'warn', expected 'debug', 'info', 'warning' or 'error';"
                " did you mean 'warning'?"
            ),
        ),
        (
            "logging: {format: text}",
            "1:19: logging.format: found 'text', expected 'console' or 'json'",
        ),
        ("- a", "1:1: found a list, expected a mapping"),
        ("logging: {}\n---\nlogging: {}", "3:1: found a second document, expected one"),
        (
            "logging: {level: '${LEVEL}'}",
            (
                "1:18: logging.level: found ${LEVEL}, expected the environment variable LEVEL to"
                " be set"
            ),
        ),
        (
            "windows: {size: 1}\nwindows: {}",
            "2:1: windows: found the key again, expected it once (first in line 1)",
        ),
        (
            "exporters: {prometheus: {endpoint: ':9464'}}",
            (
                "1:36: exporters.prometheus.endpoint: found ':9464', expected host:port, such as"
                " 127.0.0.1:4317 or 0.0.0.0:4317"
            ),
        ),
        ("a: [", "1:5: not YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_a_problem_is_reported_with_its_position(text: str, expected: str) -> None:
    assert message(text) == f"pathgauge.yaml:{expected}"


def test_all_problems_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = """
criteria:
  tool_trajectry_f1: 0.8
  response_match_score: 7.0
windows: {size: -1}
logging: {levl: info}
"""
    assert message(text).split("\n") == [
        (
            "pathgauge.yaml:3:3: criteria.tool_trajectry_f1: no scorer 'tool_trajectry_f1'; did you"
            " mean 'tool_trajectory_f1'?"
        ),
        (
            "pathgauge.yaml:4:25: criteria.response_match_score.threshold: found 7.0, expected a"
            " number from 0 to 1"
        ),
        "pathgauge.yaml:5:17: windows.size: found -1, expected a whole number from 1",
        (
            "pathgauge.yaml:6:11: logging.levl: found an unknown key, expected one of level,"
            " format; did you mean 'level'?"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "pathgauge.yaml:1:16: criteria_file: found no such file: adk.json"),
        ("{}", "adk.json:1:1: criteria: found nothing, expected a mapping"),
        ("[]", "adk.json:1:1: criteria: found nothing, expected a mapping"),
        ('{"criteria": 1}', "adk.json:1:14: criteria: found 1, expected a mapping"),
        (
            '{"criteria": {"failure": 2}}',
            "adk.json:1:26: criteria.failure.threshold: found 2, expected a number from 0 to 1",
        ),
        (
            '{"criteria": {"per_turn_user_simulator_quality_v1": 1.0}}',
            (
                "adk.json:1:15: criteria.per_turn_user_simulator_quality_v1: found"
                " 'per_turn_user_simulator_quality_v1', expected a criterion for agents: criteria"
                " for simulated users are not available in this version"
            ),
        ),
    ],
)
def test_problems_in_the_criteria_file_are_reported_in_that_file(
    text: str | None, expected: str
) -> None:
    if text is not None:
        Path("adk.json").write_text(text, encoding="utf-8")
    assert message("criteria_file: adk.json") == expected


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"^gone\.yaml: cannot be read: No such file or directory$"
    ):
        config.load(Path("gone.yaml"))


KEYS = st.sampled_from(
    [
        *Config.model_fields,
        "otlp",
        "protocols",
        "grpc",
        "endpoint",
        "settle",
        "failure",
        "threshold",
        "scorer",
        "x",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["6s", "json:dumps", "memory"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, VALUES, max_size=4) | VALUES)
def test_any_data_is_a_configuration_or_an_error(data: Json) -> None:
    with suppress(ConfigError):
        load(yaml.safe_dump(data, allow_unicode=True))
