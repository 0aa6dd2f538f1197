"""The templates for Argo Rollouts and Flagger ask the API, and understand each of its verdicts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from pathgauge.collector.core.verdicts.comparison import Outcome
from support.api_client import READER, client, sources, with_tokens
from support.evaluated import opened
from support.serving import serving
from support.shipped import default_ports, document, documents
from support.two_versions import fill, runs, with_criteria

TEMPLATE, ROLLOUT = documents("releases", "argo-rollouts.yaml")
[METRIC] = TEMPLATE["spec"]["metrics"]
HOOKS = {
    one["type"]: one["metadata"]["cmd"]
    for one in document("releases", "flagger.yaml")["spec"]["analysis"]["webhooks"]
}
ADDRESS = f"http://pathgauge.pathgauge:{default_ports()['metrics']}"
VERDICTS = {("1", "2"): "better", ("2", "1"): "worse", ("3", "1"): "undecided"}
"""By version, and the version that it is compared with."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        fill(store, [*runs("1", "p" * 40), *runs("2", "f" * 40)])
    return folder


def filled(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{{args.{name}}}}}", value)
    return text


def phase(result: str) -> str:
    """What Argo Rollouts makes of a result. Both conditions are expressions of Python as well."""
    meets = {
        name: bool(eval(METRIC[f"{name}Condition"], {"result": result}))
        for name in ("success", "failure")
    }
    if meets["failure"]:
        return "Failed"
    return "Successful" if meets["success"] else "Inconclusive"


def test_argo_understands_every_verdict() -> None:
    assert {verdict: phase(verdict) for verdict in get_args(Outcome)} == {
        "better": "Successful",
        "not_worse": "Successful",
        "worse": "Failed",
        "undecided": "Inconclusive",
    }


@pytest.mark.parametrize(("version", "against"), VERDICTS)
def test_argo_reads_the_verdict_from_the_api(
    folder: Path, tmp_path: Path, version: str, against: str
) -> None:
    web = METRIC["provider"]["web"]
    defaults = {one["name"]: one["value"] for one in TEMPLATE["spec"]["args"] if "value" in one}
    assert defaults["address"] == ADDRESS
    values = {**defaults, "agent": "support", "version": version, "against": against}
    [header] = web["headers"]
    answer = client(with_criteria(sources(folder)), with_tokens(tmp_path)).get(
        filled(web["url"], **values).removeprefix(ADDRESS),
        headers={header["key"]: filled(header["value"], token=READER)},
    )
    assert answer.status_code == 200, answer.text
    assert web["jsonPath"] == "{$.verdict}"
    assert answer.json()["verdict"] == VERDICTS[version, against]


def test_argo_waits_until_the_last_measurement_and_then_pauses() -> None:
    assert METRIC["inconclusiveLimit"] == METRIC["count"] - 1
    assert (METRIC["failureLimit"], METRIC["consecutiveSuccessLimit"]) == (0, 1)


def test_the_rollout_gives_every_argument_that_the_template_needs() -> None:
    needed = {one["name"] for one in TEMPLATE["spec"]["args"] if len(one) == 1}
    [analysis] = [
        step["analysis"]
        for step in ROLLOUT["spec"]["strategy"]["canary"]["steps"]
        if "analysis" in step
    ]
    assert analysis["templates"] == [{"templateName": TEMPLATE["metadata"]["name"]}]
    assert {one["name"] for one in analysis["args"]} == needed


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    with serving(client(with_criteria(sources(folder))).app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "jq"))), reason="needs bash, curl and jq"
)
@pytest.mark.parametrize(("version", "against"), VERDICTS)
def test_flagger_rolls_back_and_promotes_by_the_verdict(
    served: str, version: str, against: str
) -> None:
    def succeeds(hook: str, address: str = served) -> bool:
        command: Any = HOOKS[hook].replace(ADDRESS, address)
        environment = {"VERSION": version, "STABLE": against}
        for name, value in environment.items():
            command = command.replace(f"${{{name}}}", value)
        done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
        return done.returncode == 0

    verdict = VERDICTS[version, against]
    assert succeeds("rollback") == (verdict == "worse")
    assert succeeds("confirm-promotion") == (verdict == "better")
    assert not succeeds("rollback", "http://127.0.0.1:1")
    assert not succeeds("confirm-promotion", "http://127.0.0.1:1")
