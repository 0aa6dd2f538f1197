"""The section `judge`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config import Judge
from pathgauge.collector.core.documents import ConfigError
from pathgauge.scorers.judges.model_client.settings import BudgetLimits, Price, Provider, Settings

LOCAL = "providers: {local: {base_url: 'http://127.0.0.1:1/v1', allow_private: true}}"
KEY = "sk-0123456789"


def load(text: str, folder: Path) -> Judge | None:
    file = folder / "pathgauge.yaml"
    file.write_text(f"judge: {text}\n", encoding="utf-8")
    return config.load(file, {"KEY": KEY}).judge


def settings(text: str, folder: Path) -> Settings:
    section = load(text, folder)
    assert section is not None
    return section.settings(folder)


@pytest.mark.parametrize("text", ["false", "False"])
def test_it_can_be_switched_off(text: str, tmp_path: Path) -> None:
    assert load(text, tmp_path) is None
    assert config.load().judge is None


def test_all_but_the_model_and_the_key_have_defaults(tmp_path: Path) -> None:
    written = "{model: gpt-4.1-mini, providers: {openai: {api_key: '${env:KEY}'}}}"
    section = load(written, tmp_path)
    assert section is not None
    assert section.settings(tmp_path) == Settings(
        model="gpt-4.1-mini",
        providers={
            "openai": Provider("https://api.openai.com/v1", KEY, False, "json_schema", None)
        },
        timeout=30.0,
        deadline=120.0,
        retries=3,
        concurrency=8,
        cache_size=10_000,
        limits=BudgetLimits(),
        prices={},
    )
    assert (section.queue_size, section.sample_rate, section.scenarios) == (1000, 1.0, {})


def test_every_key_can_be_set(tmp_path: Path) -> None:
    section = load(
        """
  model: local:llama3:8b
  providers:
    local:
      {base_url: "http://[::1]:8000/v1", allow_private: true, structured_output: none,
       api_key: 12345}
    openai: {api_key: '${env:KEY}'}
  timeout: 5s
  deadline: 1m
  retries: 0
  concurrency: 2
  queue_size: 10
  cache_size: 0
  sample_rate: 0.5
  scenarios: {checkout: {sample_rate: 0.2}, refund:}
  budget:
    {calls_per_hour: 1, calls_per_day: 2, tokens_per_hour: 3, tokens_per_day: 4, usd_per_hour: 0.5,
     usd_per_day: 6}
  prices: {'local:llama3:8b': {input: 0, output: 0.1}}""",
        tmp_path,
    )
    assert section is not None
    assert section.settings(tmp_path) == Settings(
        model="local:llama3:8b",
        providers={
            "local": Provider("http://[::1]:8000/v1", "12345", True, "none"),
            "openai": Provider(api_key=KEY),
        },
        timeout=5.0,
        deadline=60.0,
        retries=0,
        concurrency=2,
        cache_size=0,
        limits=BudgetLimits(1, 2, 3, 4, 0.5, 6),
        prices={"local:llama3:8b": Price(0, 0.1)},
    )
    rates = {scenario: one.sample_rate for scenario, one in section.scenarios.items()}
    assert (section.queue_size, section.sample_rate, rates) == (
        10,
        0.5,
        {"checkout": 0.2, "refund": 1.0},
    )


def test_a_base_url_may_have_a_query(tmp_path: Path) -> None:
    url = "https://mine.openai.azure.com/openai/deployments/judge?api-version=2024-10-21"
    written = f"{{model: judge, providers: {{openai: {{api_key: k, base_url: '{url}'}}}}}}"
    assert settings(written, tmp_path).provider("openai").base_url == url


URL = "expected a URL such as https://api.openai.com/v1"
NO_KEY = "found no api_key, expected one, or allow_private for a server of your own that needs none"


def of_openai(written: str) -> str:
    return f"{{model: m, providers: {{openai: {written}}}}}"


def local(written: str) -> str:
    return f"{{model: 'local:m', {LOCAL}, {written}}}"


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("{}", "{}", "judge.model: found nothing, expected this key"),
        ("true", "true", "judge: found true, expected a mapping, or false"),
        ("{model: ''}", "''", "judge.model: found '', expected text that is not empty"),
        (
            "{model: m}",
            "{model",
            "judge: found no provider openai, expected one with an api_key under providers",
        ),
        (
            f"{{model: m, {LOCAL}}}",
            "{model",
            "judge: found no provider openai, expected one with an api_key under providers",
        ),
        (
            f"{{model: 'locl:m', {LOCAL}}}",
            "{model",
            (
                "judge: found the model 'locl:m' of an unknown provider, expected one of local,"
                " openai; did you mean 'local'?"
            ),
        ),
        (
            f"{{model: 'llama3:8b', {LOCAL}}}",
            "{model",
            (
                "judge: found the model 'llama3:8b' of an unknown provider, expected one of local,"
                " openai"
            ),
        ),
        (
            "{model: m, providers: {'a:b': {api_key: k}}}",
            "{model",
            "judge: found the provider 'a:b', expected a name without a colon",
        ),
        (of_openai("{}"), "{}", f"judge.providers.openai: {NO_KEY}"),
        (of_openai("{api_key: ''}"), "{api_key", f"judge.providers.openai: {NO_KEY}"),
        (of_openai("{api_key: }"), "{api_key", f"judge.providers.openai: {NO_KEY}"),
        (
            of_openai("{api_key: k, base_url: 'http://example.org/v1'}"),
            "{api_key",
            "judge.providers.openai: found a URL without https, expected https, or allow_private",
        ),
        *(
            (
                of_openai(f"{{api_key: k, base_url: 'https://{host}/v1'}}"),
                "{api_key",
                (
                    f"judge.providers.openai: found the address {host.strip('[]')}, expected a"
                    " public address, or allow_private"
                ),
            )
            for host in (
                "127.0.0.1",
                "10.0.0.7",
                "169.254.169.254",
                "[::1]",
                "[::ffff:10.0.0.1]",
                "localhost",
                "2130706433",
            )
        ),
        *(
            (
                of_openai(f"{{api_key: k, base_url: '{url}'}}"),
                f"'{url}'",
                f"judge.providers.openai.base_url: found '{url}', {URL}",
            )
            for url in (
                "api.openai.com",
                "ftp://example.org",
                "https://example.org/v1#top",
                "https://example.org/v1?a=b#top",
                "https://example.org?a=b",
                "https://example.org:0/v1",
                "https://example.org:70000/v1",
                "https://exämple.org/v1",
                "https://example.org/a b",
            )
        ),
        *(
            (
                of_openai(f"{{api_key: k, base_url: 'https://example.org/v1?{query}=1'}}"),
                "{api_key",
                (
                    "judge.providers.openai: found a base_url with a credential, expected it as"
                    " api_key"
                ),
            )
            for query in ("key", "a=b&api-key", "api-version=1&access_TOKEN", "sig")
        ),
        (
            of_openai("{api_key: k, base_url: 'https://user:secret@example.org/v1'}"),
            "'https",
            (
                "judge.providers.openai.base_url: found an address with credentials, expected it"
                " without"
            ),
        ),
        (
            of_openai("{api_key: k, structured_output: yaml}"),
            "yaml",
            (
                "judge.providers.openai.structured_output: found 'yaml', expected 'json_schema',"
                " 'json_object' or 'none'"
            ),
        ),
        (
            of_openai("{api_key: k, ca_file: nowhere.pem}"),
            "nowhere",
            (
                "judge.providers.openai.ca_file: found 'nowhere.pem', expected a file of"
                " certificates in PEM (No such file or directory)"
            ),
        ),
        (
            of_openai('{api_key: k, ca_file: "\\0"}'),
            '"\\0"',
            (
                "judge.providers.openai.ca_file: found '\\x00', expected a path without a null"
                " character"
            ),
        ),
        (
            of_openai("{base_url: 'http://h/', allow_private: true, ca_file: x}"),
            "{base_url",
            "judge.providers.openai: found http and a ca_file, expected https",
        ),
        (
            f"{{model: 'local:', {LOCAL}}}",
            "{model",
            "judge: found the model 'local:', expected a name, such as openai:gpt-4.1-mini",
        ),
        (
            local("timeout: 3m"),
            "{model",
            "judge: found timeout 180s, deadline 120s, expected timeout <= deadline",
        ),
        (local("timeout: 0"), "0}", "judge.timeout: found 0, expected greater than 0"),
        (local("retries: true"), "true", "judge.retries: found true, expected a number"),
        (local("sample_rate: true"), "true", "judge.sample_rate: found true, expected a number"),
        (
            local("prices: {m: {input: true, output: 1}}"),
            "true",
            "judge.prices.m.input: found true, expected a number",
        ),
        (
            (
                "{model: 'local:m', providers: {local: {base_url: 'http://127.0.0.1:1/v1',"
                " allow_private: on}}}"
            ),
            "on}",
            "judge.providers.local.allow_private: found 'on', expected true or false",
        ),
        (
            local("retries: -1"),
            "-1",
            "judge.retries: found -1, expected greater than or equal to 0",
        ),
        (
            local("cache_size: -1"),
            "-1",
            "judge.cache_size: found -1, expected greater than or equal to 0",
        ),
        (
            local("sample_rate: -0.1"),
            "-0.1",
            "judge.sample_rate: found -0.1, expected greater than or equal to 0",
        ),
        (
            local("scenarios: {a: {sample_rate: 1.5}}"),
            "1.5",
            "judge.scenarios.a.sample_rate: found 1.5, expected less than or equal to 1",
        ),
        (
            local("budget: {calls_per_hour: 0}"),
            "0}",
            "judge.budget.calls_per_hour: found 0, expected a whole number from 1",
        ),
        (
            local("budget: {usd_per_day: 5}"),
            "{model",
            (
                "judge: found a budget in US dollars and no price of local:m, expected one under"
                " judge.prices"
            ),
        ),
        (
            local("prices: {m: {input: -2, output: 1}}"),
            "-2",
            "judge.prices.m.input: found -2, expected greater than or equal to 0",
        ),
        (
            local("prices: {m: {input: 1, output: .inf}}"),
            ".inf",
            "judge.prices.m.output: found inf, expected a finite number",
        ),
    ],
)
def test_a_problem_is_reported_with_its_position(
    text: str, at: str, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, tmp_path)
    assert (
        str(caught.value)
        == f"{tmp_path}/pathgauge.yaml:1:{f'judge: {text}'.rindex(at) + 1}: {expected}"
    )


@pytest.mark.parametrize("key", ["sk-0123\n", " sk-0123", "sk-\u00e90123", "sk-\x070123"])
def test_an_invalid_api_key_is_an_error_that_does_not_quote_it(key: str, tmp_path: Path) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text(
        "judge: {model: m, providers: {openai: {api_key: '${env:KEY}'}}}\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError) as caught:
        config.load(file, {"KEY": key})
    assert (
        str(caught.value)
        == f"{file}:1:39: judge.providers.openai: found an api_key that a header cannot "
        "contain, expected visible ASCII without spaces and line breaks"
    )


def test_an_api_key_is_never_shown(tmp_path: Path) -> None:
    section = load("{model: m, providers: {openai: {api_key: '${env:KEY}'}}}", tmp_path)
    assert section is not None
    assert KEY not in repr(section) + str(section) + repr(section.settings(tmp_path))


def test_without_the_package_openai_a_judge_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError) as caught:
        load(f"{{model: 'local:m', {LOCAL}}}", tmp_path)
    assert (
        str(caught.value)
        == f"{tmp_path}/pathgauge.yaml:1:1: judge: found a section that needs the package openai,"
        " expected it to be installed: pip install 'pathgauge[judge]'"
    )
    assert load("false", tmp_path) is None
