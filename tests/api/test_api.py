"""The API answers from the store and from the running collector, and only to whom it may."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pathgauge.collector.api.authorization import COOKIE, LOOPBACK, Authorization
from pathgauge.collector.api.endpoints import ENDPOINTS, PREFIX
from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.service.canary import TENANT
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import explained
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.scorers.types import Reference
from support.api_client import NORTH, READER, SOUTH, TELEMETRY, client, get, sources, with_tokens
from support.drifted import drifted
from support.evaluated import EXPECTED, WALL, commit, evaluation, opened

FAILED, PASSED = evaluation("a"), evaluation("b", "passed")
OF_NORTH, OF_SOUTH = evaluation("n", tenant="north"), evaluation("s", tenant="south")
TRACE, SPAN = FAILED.invocation.trace_id, FAILED.invocation.span_id


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        for number, one in enumerate((FAILED, PASSED, OF_NORTH, OF_SOUTH)):
            commit(store, [one], WALL + number)
    return folder


@pytest.fixture(scope="module")
def api(folder: Path) -> TestClient:
    return client(sources(folder))


def test_results_are_listed_newest_first(api: TestClient) -> None:
    found = get(api, "/results?tenant=")
    assert [one["trace_id"] for one in found["results"]] == [PASSED.invocation.trace_id, TRACE]
    assert found["next"] is None


def test_names_are_compared_as_they_are_stored(tmp_path: Path) -> None:
    name = "n" * 300
    with opened(tmp_path) as store:
        commit(store, [evaluation("a", agent=name, scenario=name, version=name)])
    query = f"agent={name}&scenario={name}"
    found = client(sources(tmp_path))
    assert len(get(found, f"/results?{query}&version={name}")["results"]) == 1
    assert get(found, f"/clusters?{query}")["failures"] == 1
    assert len(get(found, f"/versions?{query}")["versions"]) == 1


def test_a_result_is_complete(api: TestClient) -> None:
    [found] = get(api, "/results?tenant=&verdict=failed")["results"]
    assert found == {
        "trace_id": TRACE,
        "span_id": SPAN,
        "tenant": "",
        "time": "2026-11-18T11:06:40Z",
        "agent": "support",
        "agent_version": "1",
        "scenario_id": "parcel",
        "verdict": "failed",
        "category": "wrong_argument",
        "signature": "find_order.order differs",
        "reference_version": "v1",
        "unmatched": None,
        "flags": [],
        "duration_s": 2.0,
        "revision": 0,
        "session": None,
        "criteria": [
            {
                "name": "trajectory",
                "scorer": "tool_trajectory_avg_score 1",
                "verdict": "failed",
                "value": 0.0,
                "threshold": 1.0,
                "reason": None,
                "judge": "",
                "explanation": "",
            }
        ],
    }


def test_pages_are_followed_by_their_cursor(api: TestClient) -> None:
    first = get(api, "/results?limit=3")
    second = get(api, f"/results?limit=3&cursor={first['next']}")
    traces = [one["trace_id"] for one in (*first["results"], *second["results"])]
    expected = [OF_SOUTH, OF_NORTH, PASSED, FAILED]
    assert traces == [one.invocation.trace_id for one in expected]
    assert second["next"] is None


def test_one_result_comes_with_what_explains_it(api: TestClient) -> None:
    found = get(api, f"/results/{TRACE}/{SPAN}")
    [criterion] = found["result"]["criteria"]
    assert "find_order with other arguments" in criterion["explanation"]
    assert found["comparisons"] == [
        {
            "criteria": ["trajectory"],
            "calls": [
                {
                    "mark": "~",
                    "expected": 'find_order(order="A-1")',
                    "actual": 'find_order(order="A-2")',
                },
                {"mark": "=", "expected": "track", "actual": "track()"},
            ],
        }
    ]
    assert found["evidence"]["invocation"]["final_response"] == "It is in Bremen."
    assert get(api, f"/results/{TRACE}")["results"] == [found]


@pytest.mark.parametrize(
    "path",
    [
        f"/results/{TRACE}",
        f"/results/{TRACE}/{SPAN}",
        f"/traces/{TRACE}",
        f"/results?trace_id={TRACE}",
    ],
)
def test_ids_may_be_in_upper_case_as_some_programs_show_them(api: TestClient, path: str) -> None:
    upper = path.replace(TRACE, TRACE.upper()).replace(SPAN, SPAN.upper())
    assert upper != path
    assert get(api, upper) == get(api, path)
    assert get(api, path) != {"results": [], "next": None, "searched_to": None}


def test_failures_are_grouped(api: TestClient) -> None:
    found = get(api, "/clusters?tenant=")
    [cluster] = found["clusters"]
    assert (cluster["signature"], cluster["failures"]) == ("find_order.order differs", 1)
    assert (found["failures"], found["complete"]) == (1, True)


def test_canaries_are_no_results_of_agents_unless_they_are_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as store:
        commit(store, [evaluation("of the agent"), evaluation("sent", tenant=TENANT)], WALL)
    api = client(sources(tmp_path / "data"))

    def listed(wanted: str = "") -> list[str]:
        return [one["tenant"] for one in get(api, f"/results{wanted}")["results"]]

    assert (listed(), listed("?tenant=(canary)")) == ([""], [TENANT])
    assert listed(f"?trace_id={evaluation('sent').invocation.trace_id}") == [TENANT]
    assert [one["failures"] for one in get(api, "/clusters")["clusters"]] == [1]
    [canaries] = get(api, "/clusters?tenant=(canary)")["clusters"]
    assert canaries["tenant"] == TENANT


def test_unknown_scenarios_are_listed_by_number() -> None:
    few = UnknownScenario("", "refnd", ("refund",), 2)
    many = UnknownScenario("", "parcle", ("parcel",), 5)
    found = get(client(sources(None, unknown=(few, many))), "/unmatched")
    assert found == {
        "scenarios": [
            {"tenant": "", "scenario_id": "parcle", "invocations": 5, "closest": ["parcel"]},
            {"tenant": "", "scenario_id": "refnd", "invocations": 2, "closest": ["refund"]},
        ],
        "further_invocations": 7,
    }


def test_a_tenant_sees_its_own_unknown_scenarios_and_no_count_of_all(tmp_path: Path) -> None:
    unknown = [UnknownScenario(tenant, "refnd", ("refund",), 2) for tenant in ("north", "south")]
    api = client(sources(None, unknown=unknown), with_tokens(tmp_path))
    found = get(api, "/summary", authorization=f"Bearer {NORTH}")
    assert found["unmatched"] == {
        "scenarios": [
            {"tenant": "north", "scenario_id": "refnd", "invocations": 2, "closest": ["refund"]}
        ],
        "further_invocations": 0,
    }
    assert found["telemetry"] is None


def current(
    scenario: str, mean: float, version: str | None = None, samples: int = 20
) -> CurrentScore:
    window = Window(
        "support", scenario, "trajectory", mean, 0.0, samples, WALL, version=version, values=(mean,)
    )
    return CurrentScore(window, FAILED.results[0].criterion, min_samples=10)


def test_the_summary_shows_the_worst_first() -> None:
    scores = [
        current("fine", 1.0),
        current("few", 0.1, samples=9),
        current("bad", 0.5),
        current("bad", 0.4, version="2"),
    ]
    found = get(client(sources(None, scores=lambda: scores)), "/summary")
    states = [(one["scenario_id"], one["scores"][0]["state"]) for one in found["series"]]
    assert states == [("bad", "breached"), ("few", "few_samples"), ("fine", "ok")]
    assert found["series"][0]["versions"] == [
        {
            "version": "2",
            "criterion": "trajectory",
            "mean": 0.4,
            "samples": 20,
            "last": "2026-11-18T11:06:40Z",
        }
    ]
    assert found["telemetry"] == TELEMETRY.model_dump()
    assert found["further_series"] == 0


def test_references_that_were_never_run_come_first(folder: Path) -> None:
    active = [
        Reference(scenario, (EXPECTED,), "v1", f"{scenario}.yaml:1")
        for scenario in ("parcel", "unused")
    ]
    found = get(client(sources(folder, references=active)), "/references")
    assert [(one["scenario_id"], one["last_run"]) for one in found["references"]] == [
        ("unused", None),
        ("parcel", "2026-11-18T11:06:43Z"),
    ]
    assert (found["matched"], found["of"]) == (4, 4)


def test_without_a_store_there_are_no_results() -> None:
    api = client(sources(None))
    assert get(api, "/results") == {"results": [], "next": None, "searched_to": None}
    assert get(api, "/clusters") == {"clusters": [], "failures": 0, "complete": True}


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        (
            "/results?verdit=failed",
            422,
            "verdit: found an unknown name, expected one of tenant, agent, scenario, category,"
            " signature, since, until, criterion, verdict, version, reason, flag, trace_id, limit,"
            " cursor; did you mean 'verdict'?",
        ),
        ("/results?limit=0", 422, "limit: Input should be greater than or equal to 1"),
        ("/results?limit=501", 422, "limit: Input should be less than or equal to 500"),
        ("/results?cursor=x", 422, "cursor: String should match pattern '^[0-9]{1,18}$'"),
        ("/results?agent=a&agent=b", 422, "agent: found it twice, expected it once"),
        (
            "/results?since=yesterday",
            422,
            "since: Input should be a time such as 2026-11-23T03:00:00Z, or an age such as 1h",
        ),
        (f"/results/{'0' * 32}", 404, "no result of this trace is stored"),
        (f"/results/{'0' * 32}/{'0' * 16}", 404, "no result of this trace and span is stored"),
    ],
)
def test_mistakes_get_a_problem_that_says_what_is_wrong(
    api: TestClient, path: str, status: int, detail: str
) -> None:
    answer = api.get(PREFIX + path)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert answer.json()["detail"] == detail


def test_a_store_that_cannot_be_read_is_temporary(tmp_path: Path) -> None:
    answer = client(sources(tmp_path)).get(f"{PREFIX}/results")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_an_answer_that_has_not_changed_is_not_sent_again(api: TestClient) -> None:
    first = api.get(f"{PREFIX}/results")
    again = api.get(f"{PREFIX}/results", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = api.get(f"{PREFIX}/results?limit=1", headers={"if-none-match": first.headers["etag"]})
    assert other.status_code == 200


PATHS = [
    one.path.format(trace_id=OF_NORTH.invocation.trace_id, span_id=OF_NORTH.invocation.span_id)
    for one in ENDPOINTS
]
WITHOUT_NAMES = {
    "/agreement",
    "/feedback",
    "/references",
    "/reference",
    "/shadow",
    "/verdict",
    "/versions",
}
"""Without parameters, these show no trace and no agent."""


@pytest.mark.parametrize("path", [*PATHS, "/events"])
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer unknown-token-000"}])
def test_without_a_valid_token_nothing_is_shown(
    folder: Path, tmp_path: Path, path: str, headers: dict[str, str]
) -> None:
    api = client(sources(folder), with_tokens(tmp_path))
    answer = api.get(PREFIX + path, headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert OF_NORTH.invocation.trace_id not in answer.text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("as_cookie", [False, True])
@pytest.mark.parametrize(("token", "sees"), [(READER, True), (NORTH, True), (SOUTH, False)])
def test_a_token_opens_what_belongs_to_it(
    folder: Path, tmp_path: Path, path: str, token: str, *, sees: bool, as_cookie: bool
) -> None:
    window = replace(current("parcel", 1.0).window, tenant="north", agent="n-agent")
    found = sources(
        folder,
        scores=lambda: [CurrentScore(window, None, 1)],
        unknown=(UnknownScenario("north", "n-agent", (), 1),),
        drifts=lambda: explained(drifted(SeriesKey("n-agent", "refund", "f1", tenant="north"))),
    )
    api = client(found, with_tokens(tmp_path))
    header = {"cookie": f"{COOKIE}={token}"} if as_cookie else {"authorization": f"Bearer {token}"}
    answer = api.get(PREFIX + path, headers=header)
    shown = any(mark in answer.text for mark in (OF_NORTH.invocation.trace_id, "n-agent"))
    assert shown is (sees and path not in WITHOUT_NAMES)


@pytest.mark.parametrize(
    "path",
    [
        "/results",
        f"/results/{OF_NORTH.invocation.trace_id}",
        f"/results/{OF_NORTH.invocation.trace_id}/{OF_NORTH.invocation.span_id}",
        f"/traces/{OF_NORTH.invocation.trace_id}",
        "/clusters",
        "/versions",
        "/verdict?agent=support&version=1&against=2",
        "/shadow?agent=support",
        "/drift",
        f"/feedback?trace_id={OF_NORTH.invocation.trace_id}",
        "/agreement",
        "/events",
    ],
)
def test_a_tenant_cannot_ask_for_another(folder: Path, tmp_path: Path, path: str) -> None:
    api = client(sources(folder), with_tokens(tmp_path))
    address = f"{PREFIX}{path}{'&' if '?' in path else '?'}tenant="
    headers = {"authorization": f"Bearer {SOUTH}"}
    for other in ("north", "nobody"):
        answer = api.get(address + other, headers=headers)
        assert (answer.status_code, answer.json()["detail"]) == (
            403,
            "tenant: found another tenant than that of the token",
        )
    own = api.get(f"{PREFIX}/results?tenant=south", headers=headers).json()["results"]
    assert [one["tenant"] for one in own] == ["south"]


def test_a_wrong_header_is_not_saved_by_a_cookie(folder: Path, tmp_path: Path) -> None:
    api = client(sources(folder), with_tokens(tmp_path))
    headers = {"authorization": "Bearer wrong-token-00000", "cookie": f"{COOKIE}={READER}"}
    assert api.get(f"{PREFIX}/results", headers=headers).status_code == 401


@pytest.mark.parametrize("path", ["/results/{trace_id}/{span_id}", "/traces/{trace_id}"])
def test_the_same_trace_of_two_tenants_is_two_traces(tmp_path: Path, path: str) -> None:
    north_run, south_run = (
        evaluation("same", outcome, tenant=tenant)
        for outcome, tenant in (("failed", "north"), ("stopped", "south"))
    )
    with opened(tmp_path) as store:
        commit(store, [north_run, south_run])
    api = client(sources(tmp_path))
    one = north_run.invocation
    address = PREFIX + path.format(trace_id=one.trace_id, span_id=one.span_id)
    assert api.get(address).status_code == 409
    north, south = (api.get(f"{address}?tenant={name}") for name in ("north", "south"))
    assert (north.status_code, south.status_code) == (200, 200)
    assert ("track" in north.text, "A-2" in south.text) == (True, False)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9464", 200),
        ("127.0.0.1:9464", 200),
        ("[::1]:9464", 200),
        ("[::1]", 200),
        ("pathgauge.example", 200),
        ("evil.example:9464", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize("path", [*PATHS, "/events"])
def test_no_web_site_can_read_by_a_name_that_leads_here(
    folder: Path, path: str, host: str, status: int
) -> None:
    known = LOOPBACK | {"pathgauge.example"}
    api = client(sources(folder), Authorization(None, None, known))
    if path == "/events" and status == 200:
        return  # would not end
    answer = api.get(PREFIX + path, headers={"host": host})
    assert (answer.status_code == 403) is (status == 403)


def test_with_a_token_any_host_name_is_answered(folder: Path, tmp_path: Path) -> None:
    tokens = replace(with_tokens(tmp_path), hosts=LOOPBACK)
    headers = {"host": "proxy.example", "authorization": f"Bearer {READER}"}
    assert client(sources(folder), tokens).get(f"{PREFIX}/results", headers=headers).is_success


def test_a_tenant_does_not_see_how_much_the_others_send(folder: Path, tmp_path: Path) -> None:
    api = client(sources(folder), with_tokens(tmp_path))
    assert get(api, "/summary", authorization=f"Bearer {NORTH}")["telemetry"] is None
    assert get(api, "/summary", authorization=f"Bearer {READER}")["telemetry"] is not None
