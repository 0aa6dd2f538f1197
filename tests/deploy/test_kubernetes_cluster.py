"""The manifests of the three roles, without a cluster: kustomize builds them, references agree, and
the configuration fits to the Kafka and PostgreSQL of the example.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from pathgauge.collector import config
from pathgauge.collector.service.cluster.partition_memory import MAX_PARTITIONS_SHARING
from pathgauge.collector.service.cluster.roles import ROLES
from support.documented_rights import Right, documented_rights
from support.shipped import DEPLOY, default_ports, document, documents

CLUSTER, SERVICES = "kubernetes/cluster", "kubernetes/cluster-services"
NAMES = [f"pathgauge-{role}" for role in ROLES]
CONFIG = config.load(
    DEPLOY / CLUSTER / "config" / "pathgauge.yaml", {"KAFKA_USER": "u", "KAFKA_PASSWORD": "p"}
)


def objects(folder: str) -> list[Any]:
    """All objects of the files that a kustomization lists, without other kustomizations."""
    files = [
        name for name in document(folder, "kustomization.yaml")["resources"] if "/" not in name
    ]
    return [one for name in files for one in documents(folder, name)]


OURS, THEIRS = objects(CLUSTER), objects(SERVICES)


def of_kind(kind: str, found: list[Any] = OURS) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in found if one["kind"] == kind}


DEPLOYMENTS = of_kind("Deployment")


def pod(name: str) -> Any:
    return DEPLOYMENTS[name]["spec"]["template"]


def container(name: str) -> Any:
    [only] = pod(name)["spec"]["containers"]
    return only


def ports(name: str) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container(name)["ports"]}


def selected(selector: dict[str, Any]) -> list[str]:
    """The deployments whose pods a selector selects."""
    return [name for name in NAMES if selector.items() <= pod(name)["metadata"]["labels"].items()]


def test_objects_are_unique_and_no_file_is_left_out() -> None:
    assert sorted((one["kind"], one["metadata"]["name"]) for one in OURS) == [
        *(("Deployment", name) for name in sorted(NAMES)),
        ("HorizontalPodAutoscaler", "pathgauge-gateway"),
        ("Namespace", "pathgauge"),
        *(("NetworkPolicy", name) for name in sorted(NAMES)),
        ("PodDisruptionBudget", "pathgauge-gateway"),
        ("PodDisruptionBudget", "pathgauge-scorer"),
        ("PodMonitor", "pathgauge"),
        ("PrometheusRule", "pathgauge"),
        ("ScaledObject", "pathgauge-scorer"),
        ("Service", "pathgauge"),
        ("Service", "pathgauge-gauge"),
    ]
    for folder in (CLUSTER, SERVICES):
        listed = set(document(folder, "kustomization.yaml")["resources"])
        found = {file.name for file in (DEPLOY / folder).glob("*.yaml")}
        assert found - {"kustomization.yaml"} <= listed


@pytest.mark.parametrize("role", ROLES)
def test_a_deployment_has_one_role_and_selects_only_its_own_pods(role: str) -> None:
    name = f"pathgauge-{role}"
    assert container(name)["args"][-2:] == ["--role", role]
    assert selected(DEPLOYMENTS[name]["spec"]["selector"]["matchLabels"]) == [name]
    assert ports(name).items() <= default_ports().items()
    assert ("otlp-grpc" in ports(name)) == (role == "gateway")


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_is_restricted(name: str) -> None:
    spec = pod(name)["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not spec["automountServiceAccountToken"]
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} <= container(name)["resources"].keys()
    assert "cpu" not in container(name)["resources"]["limits"], "a throttled scorer is fenced"


@pytest.mark.parametrize("name", NAMES)
def test_a_process_is_restarted_by_its_health_and_not_because_it_waits(name: str) -> None:
    probes = {probe: container(name)[probe]["httpGet"]["path"] for probe in PROBES}
    served = {"readinessProbe": "/activez"} if name == "pathgauge-gauge" else {}
    assert probes == PROBES | served


NO_DEADLINE = 2**31 - 1
"""What Kubernetes takes for none."""
PROBES = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}


def test_nothing_waits_for_a_standby_to_be_ready() -> None:
    gauge = DEPLOYMENTS["pathgauge-gauge"]["spec"]
    assert gauge["replicas"] == 2
    assert gauge["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 2}
    assert gauge["progressDeadlineSeconds"] == NO_DEADLINE
    assert [
        selected(one["spec"]["selector"]["matchLabels"])
        for one in of_kind("PodDisruptionBudget").values()
    ] == [["pathgauge-gateway"], ["pathgauge-scorer"]]


def test_services_lead_to_the_ports_of_one_deployment() -> None:
    for service in of_kind("Service").values():
        [name] = selected(service["spec"]["selector"])
        for port in service["spec"]["ports"]:
            assert ports(name)[port["targetPort"]] == port["port"]


def test_the_number_of_scorers_follows_the_lag_and_stays_below_that_of_partitions() -> None:
    [scaled] = of_kind("ScaledObject").values()
    spec = scaled["spec"]
    [partitions] = {topic["spec"]["partitions"] for topic in of_kind("KafkaTopic", THEIRS).values()}
    assert spec["scaleTargetRef"]["name"] in DEPLOYMENTS
    assert "replicas" not in DEPLOYMENTS[spec["scaleTargetRef"]["name"]]["spec"]
    assert spec["minReplicaCount"] < spec["maxReplicaCount"] == partitions
    assert partitions <= spec["minReplicaCount"] * MAX_PARTITIONS_SHARING
    by_type = {trigger["type"]: trigger["metadata"] for trigger in spec["triggers"]}
    assert "pathgauge_partition_lag_records" in by_type["prometheus"]["query"]
    [gateways] = of_kind("HorizontalPodAutoscaler").values()
    assert gateways["spec"]["scaleTargetRef"]["name"] in DEPLOYMENTS


def test_prometheus_scrapes_all_pods_as_one_job() -> None:
    [monitor] = of_kind("PodMonitor").values()
    assert selected(monitor["spec"]["selector"]["matchLabels"]) == NAMES
    label = monitor["spec"]["jobLabel"]
    assert {pod(name)["metadata"]["labels"][label] for name in NAMES} == {"pathgauge"}


def test_policies_allow_what_each_role_needs() -> None:
    egress = {
        name: {
            port["port"]
            for rule in policy["spec"]["egress"]
            for port in rule["ports"]
            if rule["to"][0].get("podSelector")
        }
        for name, policy in of_kind("NetworkPolicy").items()
    }
    both = {9093, 5432}
    assert egress == {
        "pathgauge-gateway": {9093},
        "pathgauge-scorer": both,
        "pathgauge-gauge": both,
    }
    for name, policy in of_kind("NetworkPolicy").items():
        assert selected(policy["spec"]["podSelector"]["matchLabels"]) == [name]
        named = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        assert named <= ports(name).keys()


@pytest.mark.parametrize("name", NAMES)
def test_volumes_and_secrets_exist(name: str) -> None:
    spec = pod(name)["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert set(volumes) == {mount["name"] for mount in container(name)["volumeMounts"]}
    made = {one["name"] for one in document(CLUSTER, "kustomization.yaml")["configMapGenerator"]}
    [kafka] = of_kind("Kafka", THEIRS)
    [postgres] = [one["metadata"]["name"] for one in THEIRS if one["kind"] == "Cluster"]
    secrets = {
        "pathgauge-tokens",
        f"{kafka}-cluster-ca-cert",
        f"{postgres}-ca",
        f"{postgres}-app",
        *of_kind("KafkaUser", THEIRS),
    }
    for volume in volumes.values():
        if "configMap" in volume:
            assert volume["configMap"]["name"] in made
        if "secret" in volume:
            assert volume["secret"]["secretName"] in secrets
    variables = {one["name"]: one for one in container(name)["env"]}
    for one in variables.values():
        if "valueFrom" in one:
            assert one["valueFrom"]["secretKeyRef"]["name"] in secrets
    user = variables["KAFKA_USER"]["value"]
    assert variables["KAFKA_PASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == user
    assert user == ("pathgauge-gateway" if name == "pathgauge-gateway" else "pathgauge-scorer")
    assert ("PGPASSWORD" in variables) == (name != "pathgauge-gateway")


def test_the_configuration_names_the_kafka_and_the_postgresql_of_the_example() -> None:
    assert CONFIG.kafka is not None
    assert CONFIG.postgres is not None
    [kafka] = of_kind("Kafka", THEIRS)
    [listener] = of_kind("Kafka", THEIRS)[kafka]["spec"]["kafka"]["listeners"]
    client = CONFIG.kafka.client
    assert client["bootstrap.servers"] == f"{kafka}-kafka-bootstrap:{listener['port']}"
    assert client["sasl.mechanism"].lower() == listener["authentication"]["type"]
    topics = {one["spec"]["topicName"] for one in of_kind("KafkaTopic", THEIRS).values()}
    assert topics == {CONFIG.kafka.traces_topic, CONFIG.kafka.logs_topic}
    rights = [
        acl["resource"]["name"]
        for user in of_kind("KafkaUser", THEIRS).values()
        for acl in user["spec"]["authorization"]["acls"]
    ]
    assert set(rights) == topics | {CONFIG.kafka.group}
    [postgres] = [one for one in THEIRS if one["kind"] == "Cluster"]
    address = conninfo_to_dict(CONFIG.postgres.conninfo)
    made = postgres["spec"]["bootstrap"]["initdb"]
    assert address["host"] == f"{postgres['metadata']['name']}-rw"
    assert address["dbname"] == made["database"]
    mounted = [mount["mountPath"] for mount in container("pathgauge-scorer")["volumeMounts"]]
    assert {
        str(Path(client["ssl.ca.location"]).parent),
        str(Path(str(address["sslrootcert"])).parent),
    } <= {*mounted}


def test_users_have_the_documented_rights() -> None:
    assert sorted(documented_rights()) == sorted(
        Right(acl["resource"]["type"], acl["resource"]["name"], f"User:{name}", operation)
        for name, user in of_kind("KafkaUser", THEIRS).items()
        for acl in user["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    )


def test_the_topics_keep_records_for_as_long_as_they_may_be_needed() -> None:
    needed = CONFIG.assembly.max_age + CONFIG.assembly.late_ttl
    for topic in of_kind("KafkaTopic", THEIRS).values():
        assert topic["spec"]["config"]["retention.ms"] >= 1000 * needed
        assert topic["spec"]["config"]["cleanup.policy"] == "delete"


def test_there_are_connections_for_all_partitions() -> None:
    [postgres] = [one for one in THEIRS if one["kind"] == "Cluster"]
    [partitions] = {topic["spec"]["partitions"] for topic in of_kind("KafkaTopic", THEIRS).values()}
    assert int(postgres["spec"]["postgresql"]["parameters"]["max_connections"]) > 2 * partitions


def test_the_rules_are_those_of_the_prometheus_folder() -> None:
    assert of_kind("PrometheusRule")["pathgauge"]["spec"] == document("prometheus", "rules.yml"), (
        "out of date: run `make manifests`"
    )


@pytest.mark.skipif(
    shutil.which("kubectl") is None,
    reason="kubectl is not on PATH, so nothing was built with kustomize",
)
@pytest.mark.parametrize("folder", [CLUSTER, SERVICES])
def test_kustomize_builds_it(folder: str) -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", DEPLOY / folder], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    found = list(yaml.safe_load_all(built.stdout))
    assert {one["metadata"].get("namespace") for one in found if one["kind"] != "Namespace"} == {
        "pathgauge"
    }
