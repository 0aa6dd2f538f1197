"""Every metric of the documents that this product covers, on a run for each of its outcomes.

The tables are in `tests/golden/documented`. The expected values follow from the definitions in the
documents; they were worked out by hand. An instrumented agent sends its spans to the service, and
the values are read from `/metrics`; the same spans in a file are scored by `pathgauge score`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import Metric

from pathgauge.collector.client import ScenarioSpanProcessor
from support.judge_server import JudgeRequest, JudgeServer, Reply, answering
from support.repository import GOLDEN
from support.running import Collector, until
from support.scripted_agent import ScriptedAgent

pytestmark = pytest.mark.slow

TABLES = sorted((GOLDEN / "documented").glob("*.yaml"))
FUNCTIONS = GOLDEN / "documented" / "my_evals.py"
"""A module that criteria name."""
PATHGAUGE = Path(sys.executable).with_name("pathgauge")
READ = "pathgauge_invocations_read_total"

Value = float | str
"""A mean score, or why there is none."""


@dataclass(frozen=True)
class Found:
    """What the service and `pathgauge score` say, by row and criterion."""

    live: Mapping[tuple[str, str], Value]
    offline: Mapping[tuple[str, str], Value]


@cache
def table(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def cells() -> Iterator[Any]:
    for path in TABLES:
        for row in table(path)["rows"]:
            for criterion, value in row["expected"].items():
                name = f"{path.stem}: {row['row']}: {criterion}"
                yield pytest.param(path, row["row"], criterion, value, id=name)


@pytest.mark.parametrize(("path", "row", "criterion", "expected"), list(cells()))
def test_the_service_and_score_give_the_documented_value(
    path: Path, row: str, criterion: str, expected: Value, found: Mapping[Path, Found]
) -> None:
    key = row, criterion
    assert (found[path].live.get(key), found[path].offline.get(key)) == (
        pytest.approx(expected, abs=5e-3) if isinstance(expected, float | int) else expected,
    ) * 2


def test_each_metric_of_the_documents_has_a_row() -> None:
    rows = Counter(criterion for cell in cells() for criterion in [cell.values[2]])
    assert sum(rows.values()) >= 170
    configured = {name for path in TABLES for name in names(table(path)["criteria"])}
    assert configured - set(rows) == set()


def names(criteria: Any) -> set[str]:
    if isinstance(criteria, dict):
        return set(criteria)
    return {entry["metric"] for entry in criteria}


@pytest.fixture(name="found", scope="module")
def _found(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Found]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FUNCTIONS.parent))
        return {path: run(table(path), tmp_path_factory.mktemp(path.stem)) for path in TABLES}


def run(rows: Mapping[str, Any], folder: Path) -> Found:
    references = [
        {"scenario": row["row"], **row["reference"]} for row in rows["rows"] if "reference" in row
    ]
    (folder / "references.yaml").write_text(yaml.safe_dump(references))
    options: dict[str, Any] = {"references": ["references.yaml"], "criteria": rows["criteria"]}
    with ExitStack() as stack:
        if "judge" in rows:
            model = stack.enter_context(JudgeServer(judge=judged))
            provider = {"base_url": model.url, "api_key": "sk-none", "allow_private": True}
            options["judge"] = {**rows["judge"], "providers": {"openai": provider}}
        collector = stack.enter_context(Collector(folder, windows={"min_samples": 1}, **options))
        spans = sent(rows["rows"], collector)
        live = live_values(rows["rows"], collector)
        (folder / "traces.bin").write_bytes(encode_spans(spans).SerializeToString())
        return Found(live, offline_values(folder))


def judged(request: JudgeRequest) -> Reply:
    """The reply that the answer of the agent asks for, if it is one for this judge; else any."""
    said = json.dumps(request.data).partition("judge says ")[2].partition("!")[0]
    schema = request.body["response_format"]["json_schema"]["schema"]["properties"]
    name = "verdict" if "verdict" in schema else "score"
    allowed = schema[name].get("enum", [True, False])
    wanted = yaml.safe_load(said)
    is_bool = isinstance(wanted, bool)
    if wanted == "nothing" and "safe" in allowed:
        return answering(reasoning="No verdict.")
    fits = [one for one in allowed if one == wanted and isinstance(one, bool) == is_bool]
    return answering(reasoning="As asked.", **{name: (fits or allowed)[0]})


def sent(rows: list[dict[str, Any]], collector: Collector) -> list[ReadableSpan]:
    """Run the agent; all spans are exported to the collector over gRPC."""
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{collector.ports['grpc']}", insecure=True)
    kept, provider = InMemorySpanExporter(), TracerProvider(resource=Resource({}))
    for processor in (
        ScenarioSpanProcessor(),
        SimpleSpanProcessor(kept),
        BatchSpanProcessor(exporter),
    ):
        provider.add_span_processor(processor)
    agent, invocations = ScriptedAgent(provider.get_tracer("documented")), 0
    for row in rows:
        for number, script in enumerate(scripts(row)):
            agent.run(row["row"], row["row"], f"{row['row']} {number}", script)
            invocations += 1
    provider.shutdown()
    assert until(lambda: collector.value(READ) == invocations), collector.value(READ)
    return list(kept.get_finished_spans())


def scripts(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs of a row; `times` repeats one."""
    return [one for script in row["runs"] for one in [script] * script.get("times", 1)]


def live_values(rows: list[dict[str, Any]], collector: Collector) -> dict[tuple[str, str], Value]:
    wanted = {(row["row"], criterion) for row in rows for criterion in row["expected"]}
    until(lambda: wanted <= exposed(collector.families()).keys())
    return exposed(collector.families())


def exposed(families: list[Metric]) -> dict[tuple[str, str], Value]:
    found: dict[str, dict[tuple[str, str], Value]] = {"none": {}, "mean": {}, "aggregate": {}}
    for sample in (sample for family in families for sample in family.samples):
        key = sample.labels.get("agent", ""), sample.labels.get("metric", "")
        if sample.name == "pathgauge_score_window_mean":
            found["mean"][key] = sample.value
        elif sample.name == "pathgauge_not_evaluated_total" and sample.value:
            found["none"][key] = sample.labels["reason"]
        elif sample.name == "pathgauge_aggregate_score":
            found["aggregate"][key] = sample.value
    return found["none"] | found["mean"] | found["aggregate"]


def offline_values(folder: Path) -> dict[tuple[str, str], Value]:
    command = [str(PATHGAUGE), "score", "traces.bin", "--json", "--config", "pathgauge.yaml"]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    *invocations, verdict = (json.loads(line) for line in done.stdout.splitlines())
    values: dict[tuple[str, str], list[float]] = {}
    found: dict[tuple[str, str], Value] = {}
    for one in invocations:
        for criterion, result in one["results"].items():
            key = one["agent"], criterion
            if result["score"] is None:
                found[key] = result["reason"]
            else:
                values.setdefault(key, []).append(result["score"])
    means = {key: sum(scores) / len(scores) for key, scores in values.items()}
    aggregates = {
        (line["agent"], line["criterion"]): line["score"] for line in verdict["gate"]["aggregates"]
    }
    return found | means | aggregates
