"""The Kubernetes manifests, without a cluster: kustomize builds them, references agree."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.shipped import DEPLOY, default_ports, document, documents

BASE, REPLICAS = "kubernetes/base", "kubernetes/replicas"
SECRETS = {"pathgauge-tokens": {"otlp", "metrics"}}
"""Objects that the user creates, as described in deploy/kubernetes/README.md."""


def kustomization(folder: str) -> Any:
    return document(folder, "kustomization.yaml")


def resources(folder: str) -> Iterator[Any]:
    """All objects of a kustomization and of those that it includes."""
    for entry in kustomization(folder).get("resources", []):
        path = (DEPLOY / folder / entry).resolve()
        inside = str(path.relative_to(DEPLOY.resolve()))
        yield from resources(inside) if path.is_dir() else documents(inside)


def config_maps(folder: str) -> dict[str, set[str]]:
    """The keys of every generated ConfigMap, those of included kustomizations too."""
    found: dict[str, set[str]] = {}
    for entry in kustomization(folder).get("resources", []):
        path = (DEPLOY / folder / entry).resolve()
        if path.is_dir():
            found |= config_maps(str(path.relative_to(DEPLOY.resolve())))
    for made in kustomization(folder).get("configMapGenerator", []):
        assert all((DEPLOY / folder / file).exists() for file in made["files"])
        found[made["name"]] = {Path(file).name for file in made["files"]}
    return found


OBJECTS = list(resources(REPLICAS))
"""The larger of the two kustomizations, which includes the other."""
WORKLOADS = {
    one["metadata"]["name"]: one["spec"]
    for one in OBJECTS
    if one["kind"] in ("StatefulSet", "Deployment")
}
PODS = {name: spec["template"] for name, spec in WORKLOADS.items()}


def of_kind(kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in OBJECTS if one["kind"] == kind}


def selected(selector: dict[str, Any]) -> list[str]:
    """The workloads whose pods a selector selects."""
    return [
        name for name, pod in PODS.items() if selector.items() <= pod["metadata"]["labels"].items()
    ]


def container(workload: str) -> Any:
    [only] = PODS[workload]["spec"]["containers"]
    return only


def ports(workload: str) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container(workload)["ports"]}


def test_objects_are_unique_and_no_file_is_left_out() -> None:
    kinds = sorted((one["kind"], one["metadata"]["name"]) for one in resources(BASE))
    assert kinds == [
        ("Namespace", "pathgauge"),
        ("NetworkPolicy", "pathgauge"),
        ("PodDisruptionBudget", "pathgauge"),
        ("PrometheusRule", "pathgauge"),
        ("Service", "pathgauge"),
        ("Service", "pathgauge-replicas"),
        ("ServiceMonitor", "pathgauge"),
        ("StatefulSet", "pathgauge"),
    ]
    for folder in (BASE, REPLICAS):
        listed = set(kustomization(folder)["resources"])
        assert {file.name for file in (DEPLOY / folder).glob("*.yaml")} - {
            "kustomization.yaml"
        } <= listed


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_workload_selects_only_its_own_pods(workload: str) -> None:
    assert selected(WORKLOADS[workload]["selector"]["matchLabels"]) == [workload]


def test_every_service_port_matches_a_container_port() -> None:
    for service in of_kind("Service").values():
        [workload] = selected(service["spec"]["selector"])
        for port in service["spec"]["ports"]:
            assert ports(workload)[port["targetPort"]] == port["port"]
    assert ports("pathgauge") == default_ports()
    headless = of_kind("Service")[WORKLOADS["pathgauge"]["serviceName"]]
    assert (headless["spec"]["clusterIP"], selected(headless["spec"]["selector"])) == (
        "None",
        ["pathgauge"],
    )


def test_prometheus_scrapes_one_service_once_with_the_token() -> None:
    [monitor] = of_kind("ServiceMonitor").values()
    wanted = monitor["spec"]["selector"]["matchLabels"]
    matched = [
        one
        for one in of_kind("Service").values()
        if wanted.items() <= one["metadata"].get("labels", {}).items()
    ]
    assert [service["metadata"]["name"] for service in matched] == ["pathgauge"], (
        "the name becomes the label `job` that rules look for"
    )
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in matched[0]["spec"]["ports"]}
    credentials = endpoint["authorization"]["credentials"]
    assert credentials["key"] in SECRETS[credentials["name"]]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_referenced_config_maps_and_secrets_exist_with_their_keys(workload: str) -> None:
    made, pod = config_maps(REPLICAS), PODS[workload]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]} | {
        claim["metadata"]["name"]: claim
        for claim in WORKLOADS[workload].get("volumeClaimTemplates", [])
    }
    for mount in container(workload)["volumeMounts"]:
        volume = volumes.pop(mount["name"])
        keys = made[volume["configMap"]["name"]] if "configMap" in volume else set()
        if "secret" in volume:
            assert volume["secret"]["secretName"] in SECRETS
        if "subPath" in mount:
            assert mount["subPath"] in keys
            assert Path(mount["mountPath"]).name == mount["subPath"]
    assert not volumes, "mounted nowhere"
    references = [
        one["valueFrom"]["secretKeyRef"]
        for one in container(workload).get("env", [])
        if "valueFrom" in one
    ]
    assert all(reference["key"] in SECRETS[reference["name"]] for reference in references)


def test_the_configuration_uses_the_mounted_paths() -> None:
    config = document(BASE, "config", "pathgauge.yaml")
    mounted = {
        mount["name"]: mount["mountPath"] for mount in container("pathgauge")["volumeMounts"]
    }
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert f'"--config", "{mounted["config"]}"' in dockerfile
    assert Path(mounted["references"]) == Path(mounted["config"]).with_name("references")
    assert config["references"] == ["references/*.yaml"]
    assert Path(config["store"]["path"]).parent == Path(mounted["data"])
    files = [
        config["auth"]["tenants"]["default"]["token_file"],
        config["exporters"]["prometheus"]["token_file"],
    ]
    assert files == [
        f"${{env:PATHGAUGE_SECRETS:-{mounted['tokens']}}}/{key}" for key in ("otlp", "metrics")
    ]
    [argument] = container("pathgauge-collector")["args"]
    assert argument.partition("=")[2] == "/etc/otelcol/replicas.yaml"


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_pod_is_restricted(workload: str) -> None:
    pod = PODS[workload]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"]
    assert container(workload)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} <= container(workload)["resources"].keys()
    assert (
        of_kind("Namespace")["pathgauge"]["metadata"]["labels"][
            "pod-security.kubernetes.io/enforce"
        ]
        == "restricted"
    )


def test_policies_and_budgets_match_existing_pods_and_ports() -> None:
    [budget] = of_kind("PodDisruptionBudget").values()
    assert selected(budget["spec"]["selector"]["matchLabels"]) == ["pathgauge"]
    for policy in of_kind("NetworkPolicy").values():
        [workload] = selected(policy["spec"]["podSelector"]["matchLabels"])
        named = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        assert named <= ports(workload).keys()
    peers = [
        peer
        for rule in of_kind("NetworkPolicy")["pathgauge"]["spec"]["ingress"]
        for peer in rule["from"]
    ]
    senders = [peer["podSelector"]["matchLabels"] for peer in peers if "podSelector" in peer]
    assert [selected(labels) for labels in senders] == [["pathgauge-collector"]]


def test_the_load_balancer_resolves_the_headless_service() -> None:
    [hosts] = [
        one["value"]
        for one in container("pathgauge-collector")["env"]
        if one["name"] == "PATHGAUGE_HOSTS"
    ]
    assert (
        hosts == f"{WORKLOADS['pathgauge']['serviceName']}.{kustomization(BASE)['namespace']}.svc"
    )
    images = {service["image"] for service in document("compose.yaml")["services"].values()}
    assert {container(workload)["image"] for workload in WORKLOADS} <= images


def test_the_rules_are_those_of_the_prometheus_folder() -> None:
    assert of_kind("PrometheusRule")["pathgauge"]["spec"] == document("prometheus", "rules.yml"), (
        "out of date: run `make manifests`"
    )


def test_every_dashboard_is_a_config_map_with_the_label() -> None:
    made = kustomization("grafana")
    files = {file for one in made["configMapGenerator"] for file in one["files"]}
    assert files == {
        f"dashboards/{file.name}" for file in (DEPLOY / "grafana" / "dashboards").glob("*.json")
    }
    assert made["generatorOptions"]["labels"] == {"grafana_dashboard": "1"}


@pytest.mark.skipif(
    shutil.which("kubectl") is None,
    reason="kubectl is not on PATH, so nothing was built with kustomize",
)
@pytest.mark.parametrize("folder", [BASE, REPLICAS])
def test_kustomize_builds_it(folder: str) -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", DEPLOY / folder], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    objects = list(yaml.safe_load_all(built.stdout))
    assert len(objects) == len(list(resources(folder))) + len(config_maps(folder))
    assert {one["metadata"].get("namespace") for one in objects if one["kind"] != "Namespace"} == {
        "pathgauge"
    }
