"""What people read on the pages, without scripts."""

from __future__ import annotations

import html
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.api.authorization import LOOPBACK, Authorization
from pathgauge.collector.api.overview import MAX_SERIES
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator, SessionResult
from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.queries import results, rows
from pathgauge.collector.web import app
from pathgauge.collector.web.app import VIEWS
from pathgauge.scorers.cost.latency_and_failure import Latency
from pathgauge.scorers.types import AgentRun, ModelCall, Reference, Score, ToolCall
from support.api_client import sources
from support.evaluated import EXPECTED, WALL, commit, evaluation, opened, raised
from support.watched_traffic import HOUR, WALL as TRAFFIC_WALL, watched
from support.web_client import changed, site, text_of

FAILED, PASSED = evaluation("a"), evaluation("b", "passed", version="2")
RICH = changed(
    "rich",
    final_response="It is in Hamburg.",
    conversation_id="talk",
    turn_index=1,
    error=True,
    error_type="TimeoutError",
    flags=frozenset({"truncated"}),
    tool_calls=(
        ToolCall(
            "find_order", {"order": "A-2"}, result={"id": 7}, start_ns=10**9, end_ns=2 * 10**9
        ),
        ToolCall("track", {}, error="no such parcel"),
    ),
    model_calls=(ModelCall("m", model="large", start_ns=10**9, end_ns=3 * 10**9),),
    sub_agents=(AgentRun("s", "courier", "support", final_response="left Hamburg"),),
)
EARLIER = changed("earlier", conversation_id="talk", user_input="Hello?")
OTHER = changed("other", conversation_id="another talk")
EVENTS = (FAILED, PASSED, EARLIER, OTHER, RICH)
REFERENCE = Reference("parcel", (EXPECTED,), "v1", "parcel.yaml:1")


def path_of(name: str) -> str:
    found = {"failed": FAILED, "passed": PASSED, "earlier": EARLIER, "rich": RICH}[name].invocation
    return f"/results/{found.trace_id}/{found.span_id}"


def score(mean: float, scenario: str = "parcel", version: str | None = None) -> CurrentScore:
    window = Window(
        "support", scenario, "trajectory", mean, 0.0, 20, WALL, version=version, values=(1.0, mean)
    )
    return CurrentScore(window, Criterion("trajectory", ToolTrajectoryAvgScore(), 1.0), 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        for number, one in enumerate(EVENTS):
            commit(store, [one], WALL + number)
    return folder


@pytest.fixture(scope="module")
def pages(folder: Path) -> TestClient:
    found = sources(
        folder,
        scores=lambda: [score(1.0, "other"), score(0.25), score(0.0, version="2")],
        unknown=[UnknownScenario("", "parcle", ("parcel",), 5)],
        references=[REFERENCE, Reference("never", (EXPECTED,), "v2")],
    )
    return site(found, trace_url="https://tempo.example/trace/{trace_id}?x=1")


def read(pages: TestClient, path: str, status: int = 200) -> str:
    answer = pages.get(path)
    assert answer.status_code == status, answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    return answer.text


def test_every_page_works_without_a_store_and_without_results() -> None:
    empty = site(sources(None))
    for path in VIEWS:
        if "{" not in path:
            assert "store: memory" in read(empty, path)
    assert "No results yet" in text_of(read(empty, "/"))


def test_the_list_says_why_a_result_has_no_score_and_errors_of_scorers_first(
    tmp_path: Path,
) -> None:
    rootless = changed("rootless", flags=frozenset({"missing_root"}))
    with opened(tmp_path) as store:
        commit(store, [raised("e"), rootless], WALL)
    page = text_of(read(site(sources(tmp_path)), "/results"))
    assert "scorer error own_scorer: error" in page
    assert "not scored its telemetry is incomplete" in page


def test_the_overview_lists_the_worst_series_first(pages: TestClient) -> None:
    page = text_of(read(pages, "/"))
    worst, best = page.index("support · parcel breached"), page.index("support · other ok")
    assert worst < best
    assert "trajectory 0.25 ≥ 1 20 breached" in page


def test_the_overview_names_unknown_scenarios_with_the_closest_known_id(pages: TestClient) -> None:
    assert "parcle 5 parcel" in text_of(read(pages, "/"))


def test_the_overview_gives_the_health_of_the_telemetry_in_one_line(pages: TestClient) -> None:
    assert (
        "receiving Telemetry so far: 10 spans received, 2 dropped; 3 invocations read, 2 scored,"
        " 1 skipped; 4 traces open. 1 span refused since the last start."
        in text_of(read(pages, "/"))
    )


@pytest.mark.parametrize("path", ["/results/aa", "/results/aa/bb", "/results/aa/bb/reference.yaml"])
def test_the_link_of_an_exemplar_says_that_no_results_are_kept(path: str) -> None:
    answer = site(sources(None)).get(path)
    assert answer.status_code == 404
    assert "store: memory" in text_of(answer.text)
    assert "too old" not in answer.text


def test_the_overview_names_the_scopes_that_no_dialect_understands(pages: TestClient) -> None:
    assert (
        "No dialect understands the spans of these scopes, which speak of agents, models or tools:"
        " acme.agents (5 spans)."
    ) in text_of(read(pages, "/"))


def test_the_overview_names_agents_that_call_other_tools_and_those_with_too_few_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drift = watched("support")
    drift.observe("", "rare", None, ["search"], TRAFFIC_WALL)
    ended = TRAFFIC_WALL + 269 * HOUR

    def overview(now: float) -> str:
        monkeypatch.setattr(time, "time", lambda: now)
        return text_of(read(site(sources(None, traffic=lambda: drift.snapshot(now))), "/"))

    page = overview(ended + 71 * HOUR)
    assert "Agents that call other tools than before" in page
    assert "tool fetch new: 0 % → 100 % of invocations" in page
    assert (
        "Too few invocations without a reference to see changes: rare (199 more invocations"
        " needed)." in page
    )
    silent = overview(ended + 73 * HOUR)
    assert "tool fetch" not in silent
    assert "rare (199" in silent
    assert "rare" not in overview(TRAFFIC_WALL + 29 * 24 * HOUR)


def test_the_overview_finds_series_by_name(pages: TestClient) -> None:
    page = text_of(read(pages, "/?q=OTH"))
    assert "support · other" in page
    assert "support · parcel" not in page
    assert "No agent or scenario has this name" in text_of(read(pages, "/?q=nothing"))


def test_many_series_are_shown_on_several_pages() -> None:
    found = site(sources(None, scores=lambda: [score(1.0, f"s{n:03}") for n in range(250)]))
    first, last = read(found, "/"), read(found, "/?from=200")
    assert ("1 to 100 of 250 pairs" in text_of(first), 'href="/?from=100"' in first) == (True, True)
    assert "201 to 250 of 250 pairs" in text_of(last)
    assert 'href="/?from=300"' not in last


def test_results_are_listed_newest_first_with_a_reason(pages: TestClient) -> None:
    page = read(pages, "/results")
    paths = re.findall(r'href="(/results/\w+/\w+)"', page)
    assert paths == [
        f"/results/{one.invocation.trace_id}/{one.invocation.span_id}" for one in EVENTS[::-1]
    ]
    assert "find_order.order differs wrong argument" in text_of(page)
    assert "passed 1 threshold" in text_of(page)


def test_the_label_of_an_alert_and_the_whole_name_lead_to_the_same_page(tmp_path: Path) -> None:
    agent, name = "agent " * 20, "parcel " * 20
    with opened(tmp_path) as store:
        commit(store, [evaluation("long", agent=agent, scenario=name)])
    labels = {"agent": label_value(agent, MAX_NAME_BYTES), "scenario": label_value(name)}
    current = score(0.25)
    window = replace(current.window, agent=labels["agent"], scenario=labels["scenario"])
    long = site(
        sources(
            tmp_path,
            scores=lambda: [replace(current, window=window)],
            references=[Reference(name, (EXPECTED,), "v1", "parcel.yaml:1")],
        )
    )
    for query in ({"agent": agent, "scenario": name}, labels):
        page = text_of(long.get("/scenario", params=query).text)
        assert "Recent scores" in page
        assert "1 failed invocation" in page
        assert "parcel.yaml:1" in page


def test_a_series_is_found_however_many_others_are_worse() -> None:
    scores = [score(0.5, f"scenario {number}") for number in range(MAX_SERIES + 1)]
    many = site(sources(None, scores=lambda: [*scores, score(1.0, "healthy")]))
    assert "support · healthy" in text_of(read(many, "/?q=healthy"))
    assert "2 further pairs" in text_of(read(many, "/"))
    assert "Recent scores" in text_of(read(many, "/scenario?agent=support&scenario=healthy"))


def test_links_of_runs_without_names_list_these_runs(tmp_path: Path) -> None:
    nameless, named = evaluation("no", agent="", scenario=""), evaluation("named")
    of_agent = evaluation("of agent", scenario="")
    with opened(tmp_path) as store:
        commit(store, [nameless, named, of_agent])
    found = site(sources(tmp_path))
    for one, address in [
        (nameless, "/scenario"),
        (of_agent, "/scenario?agent=support"),
        (nameless, f"/results/{nameless.invocation.trace_id}/{nameless.invocation.span_id}"),
    ]:
        links = re.findall(
            r'href="(/results\?[^"]*(?:signature|category|version)=[^"]*)"', read(found, address)
        )
        assert links
        for link in map(html.unescape, links):
            [listed] = re.findall(r'href="(/results/\w+/\w+)"', read(found, link))
            assert listed.split("/")[2] == one.invocation.trace_id
    [every] = re.findall(r'href="([^"]*)">Results</a> ·', read(found, "/scenario?agent=support"))
    assert read(found, html.unescape(every)).count("<bdi>find_order.order differs") == 2


def test_a_trace_of_several_tenants_is_not_taken_for_that_of_one(tmp_path: Path) -> None:
    shared = [evaluation("a", tenant=tenant, version=tenant) for tenant in ("north", "south")]
    path = f"/results/{shared[0].invocation.trace_id}/{shared[0].invocation.span_id}"
    found = site(sources(tmp_path))
    with opened(tmp_path) as store:
        commit(store, shared)
        assert "Several tenants have this trace" in text_of(read(found, path, 409))
        assert "Version of the agent south" in text_of(read(found, f"{path}?tenant=south"))
        commit(store, [evaluation("a", version="7")])
    # No tenant can be named in the address of a result without one.
    assert "Version of the agent 7" in text_of(read(found, path))


def test_an_unknown_number_of_tokens_is_not_0(tmp_path: Path) -> None:
    one = changed("tokens", output_tokens=1234)
    with opened(tmp_path) as store:
        commit(store, [one])
    path = f"/results/{one.invocation.trace_id}/{one.invocation.span_id}"
    assert "Tokens unknown in, 1,234 out" in text_of(read(site(sources(tmp_path)), path))


def test_groups_of_the_newest_failures_are_not_called_those_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as store:
        commit(store, [FAILED, OTHER], time.time())
    found = site(sources(tmp_path))
    assert "All 2 failed invocations" in text_of(read(found, "/"))
    monkeypatch.setattr("pathgauge.collector.store.queries.clusters.MAX_FAILURES", 1)
    assert "All failed invocations ; the newest 1 were grouped." in text_of(read(found, "/"))


def test_failures_without_recent_scores_are_not_called_no_results(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [FAILED], time.time())
    page = text_of(read(site(sources(tmp_path)), "/"))
    assert "No scores are recent" in page
    assert "No results yet" not in page


@pytest.fixture
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One query looks at one row, unless all rows match."""
    monkeypatch.setattr(rows, "FIRST_WINDOW", 1)
    monkeypatch.setattr(rows, "_MAX_WINDOW", 1)
    monkeypatch.setattr(results, "SEARCH_S", -1.0)


@pytest.mark.usefixtures("short_searches")
def test_a_page_goes_on_with_a_search_that_has_found_nothing(pages: TestClient) -> None:
    page = read(pages, "/results?version=2")
    assert re.findall(r'href="(/results/\w+/\w+)"', page) == [path_of("passed")]
    assert "nothing was looked at yet" in text_of(page)
    assert "No result matches these filters" in text_of(read(pages, "/results?version=7"))
    # A live update is one query: it would hide what the page has found.
    assert "every 5s" not in page


@pytest.mark.usefixtures("short_searches")
def test_a_search_that_ends_early_says_how_far_it_has_come(
    pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "SEARCH_S", 0.0)
    page = read(pages, "/results?version=7")
    assert re.search(
        r"No result since 2026-11-18 11:06:\d\d .* matches these filters", text_of(page)
    )
    assert re.findall(r'href="/results\?version=7&amp;cursor=(\d+)"', page)
    assert "every 5s" not in page


def test_filters_are_in_the_address_and_in_the_form(pages: TestClient) -> None:
    page = read(pages, "/results?verdict=passed&agent=&scenario=parcel&since=&criterion=trajectory")
    assert re.findall(r'href="(/results/\w+/\w+)"', page) == [path_of("passed")]
    assert '<option value="passed" selected>' in page
    assert 'name="scenario" value="parcel"' in page


def test_a_filter_without_a_place_in_the_form_stays_in_it(tmp_path: Path) -> None:
    made_up: Any = "of_a_plug_in"
    one = evaluation("odd")
    result = replace(one.results[0], score=Score(None, made_up), verdict="not_evaluated")
    with opened(tmp_path) as store:
        commit(store, [replace(one, results=(result,))])
    page = read(site(sources(tmp_path)), "/results?reason=of_a_plug_in")
    assert '<option value="of_a_plug_in" selected>of_a_plug_in</option>' in page


def test_the_worst_results_are_listed_first_on_demand(pages: TestClient) -> None:
    page = read(pages, "/results?criterion=trajectory&order=worst")
    assert re.findall(r'href="(/results/\w+/\w+)"', page)[-1] == path_of("passed")


@pytest.mark.parametrize("are_recent", [True, False])
def test_the_worst_results_are_the_highest_where_low_is_good(
    tmp_path: Path, *, are_recent: bool
) -> None:
    latency = Criterion("latency", Latency(), 1.0)
    slow_first = []
    with opened(tmp_path) as store:
        for seconds in (2, 9, 5):
            one = evaluation(f"after {seconds} s")
            invocation = replace(one.invocation, end_ns=(1 + seconds) * 10**9)
            scored = Evaluator((latency,)).evaluate(invocation, one.match)
            commit(store, [with_failure(scored)])
            slow_first.append((-seconds, f"/results/{invocation.trace_id}/{invocation.span_id}"))
    window = Window("support", "parcel", "latency", 5.0, 0, 3, WALL)
    recent = [CurrentScore(window, latency, 1)] if are_recent else []
    of_store = sources(tmp_path, scores=lambda: recent)
    found = site(replace(of_store, evaluator=lambda: Evaluator((), {"parcel": (latency,)})))
    page = read(found, "/results?criterion=latency&order=worst")
    listed = re.findall(r'href="(/results/\w+/\w+)"', page)
    assert listed == [path for _, path in sorted(slow_first)]
    assert "threshold ≤ 1 s" in text_of(read(found, "/scenario?agent=support&scenario=parcel"))


def test_a_filter_that_is_not_valid_is_explained_next_to_the_form(pages: TestClient) -> None:
    page = read(pages, "/results?since=yesterday&colour=red", 422)
    assert "since: Input should be a time such as" in text_of(page)
    assert "colour: found an unknown name, expected one of" in text_of(page)
    assert 'value="yesterday"' in page


def test_older_results_are_one_link_away_and_not_live(pages: TestClient) -> None:
    first = read(pages, "/results?limit=2")
    assert 'hx-trigger="every 5s"' in first
    [more] = re.findall(r'href="(/results\?limit=2&amp;cursor=\d+)"', first)
    second = read(pages, html.unescape(more))
    assert len(re.findall(r'href="/results/\w+/\w+"', second)) == 2
    assert "hx-trigger" not in second


def test_a_result_shows_both_trajectories_and_the_argument_that_differs(pages: TestClient) -> None:
    page = read(pages, path_of("failed"))
    assert "<del>1</del>" in page
    assert "<ins>2</ins>" in page
    assert '~ other arguments find_order order "A- 1 " find_order order "A- 2 "' in text_of(page)
    assert "find_order with other arguments" in text_of(page)


def test_a_result_explains_errors_flags_sub_agents_times_and_answers(pages: TestClient) -> None:
    page = read(pages, path_of("rich"))
    text = text_of(page)
    for shown in (
        "The invocation ended with an error: TimeoutError .",
        "truncated : Text was cut before it arrived",
        'find_order order "A-2" {"id": 7} not known 1.00 s',
        "error no such parcel",
        "courier support as a tool not recorded left Hamburg",
        "2.00 s in all",
        "model large",
    ):
        assert shown in text
    assert "<del>Bremen</del>" in page
    assert "<ins>Hamburg</ins>" in page


def test_the_turns_of_a_conversation_are_linked(pages: TestClient) -> None:
    page = read(pages, path_of("rich"))
    turns = page.partition('<ol class="turns">')[2].partition("</ol>")[0]
    assert re.findall(r'href="([^"]+)">([^<]+)', turns) == [
        (path_of("earlier"), "Turn 0"),
        (path_of("rich"), "Turn 1"),
    ]
    assert "Hello?" in turns


def test_a_result_links_to_its_trace_and_to_similar_failures(pages: TestClient) -> None:
    page = read(pages, path_of("failed"))
    trace = FAILED.invocation.trace_id
    assert f'href="https://tempo.example/trace/{trace}?x=1"' in page
    [similar] = re.findall(r'href="([^"]+)">Invocations that failed like this', page)
    assert path_of("failed") in read(pages, html.unescape(similar))


def test_a_session_has_no_trace_and_becomes_no_reference(tmp_path: Path) -> None:
    session = replace(evaluation("s"), session=SessionResult("idle", (("t", "s"),), ()))
    with opened(tmp_path, EvidencePolicy(keep="all")) as store:
        commit(store, [session], WALL)
    pages = site(sources(tmp_path), trace_url="https://tempo.example/trace/{trace_id}")
    path = f"/results/{session.invocation.trace_id}/{session.invocation.span_id}"
    page = read(pages, path)
    assert "https://tempo.example" not in page
    assert "Use as reference" not in page
    assert "One of its turns can become a reference" in read(pages, f"{path}/reference.yaml", 409)


def test_a_result_becomes_a_reference(pages: TestClient) -> None:
    answer = pages.get(f"{path_of('passed')}/reference.yaml")
    trace = PASSED.invocation.trace_id
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="reference-{trace}.yaml"'
    )
    assert yaml.safe_load(answer.text) == {
        "scenario": "parcel",
        "input": "Where is my parcel?",
        "expected_tools": [
            {"name": "find_order", "args": {"order": "A-1"}},
            {"name": "track", "args": {}},
        ],
        "expected_response": "It is in Bremen.",
    }


def test_the_reference_of_one_turn_says_that_the_conversation_has_others(
    pages: TestClient, tmp_path: Path
) -> None:
    def comments(of: TestClient, path: str) -> str:
        return "".join(re.findall("^# (.*)\n", of.get(f"{path}/reference.yaml").text, re.MULTILINE))

    compared = "A reference with one turn is compared with every turn of its conversations."
    for name, number in (("earlier", 0), ("rich", 1)):
        said = f"This is only turn {number} of a conversation, counted from 0.{compared}"
        assert said in comments(pages, path_of(name))
    assert "turn" not in comments(pages, path_of("passed"))
    unmatched = [evaluation(name, matched=False) for name in ("x", "y")]
    run = unmatched[0].invocation
    with opened(tmp_path, EvidencePolicy(keep="all")) as store:
        talk = [
            replace(one, invocation=replace(one.invocation, conversation_id="talk"))
            for one in unmatched
        ]
        commit(store, talk)
    found = comments(site(sources(tmp_path)), f"/results/{run.trace_id}/{run.span_id}")
    assert f"This is only one turn of a conversation.{compared}" in found


def test_an_unknown_result_is_not_found(pages: TestClient) -> None:
    assert "No result of this trace and span" in text_of(read(pages, "/results/aa/bb", 404))


def test_the_scenario_page_shows_history_failures_and_the_reference(pages: TestClient) -> None:
    page = read(pages, "/scenario?agent=support&scenario=parcel")
    text = text_of(page)
    for shown in (
        "4 failed invocations: ",
        "5 results. Points are means",
        "version v1 , parcel.yaml:1",
        "User Where is my parcel?",
        "Answer It is in Bremen.",
        "5 invocations 4 failed newest",
    ):
        assert shown in text
    [chart] = re.findall(r'data-chart="([^"]+)"', page)
    assert '"versions": [[1795000001.0, "2"]]' in html.unescape(chart)
    assert re.search(r"2 1 0 0 0% ", text)


def test_the_scenario_page_of_a_series_without_results_says_so(pages: TestClient) -> None:
    page = text_of(read(pages, "/scenario?agent=nobody&scenario=parcel"))
    assert "No results of this agent in this scenario are stored." in page
    page = text_of(read(pages, "/scenario?agent=nobody"))
    assert "No invocation of this agent without a scenario id is stored. Results has those" in page
    assert "too long" in text_of(read(pages, f"/scenario?agent={'x' * 1001}", 422))


def test_a_reference_whose_runs_are_not_known_is_not_called_never_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_memory = text_of(read(site(sources(None, references=[REFERENCE])), "/references"))
    monkeypatch.setattr("pathgauge.collector.store.queries.runs._SEARCH_S", -1.0)
    too_slow = text_of(read(site(sources(folder, references=[REFERENCE])), "/references"))
    for text in (in_memory, too_slow):
        assert "1 active reference; the last use is not known of all" in text
        assert "parcel v1 unknown" in text
        assert "never used" not in text


def test_references_are_listed_those_that_were_never_run_first(pages: TestClient) -> None:
    text = text_of(read(pages, "/references"))
    assert "The references match 5 of the last 5 invocations." in text
    assert text.index("never v2 never used") < text.index("parcel v1 2026-")


def test_static_files_are_cached_for_good_and_have_their_licences(pages: TestClient) -> None:
    address = re.findall(r'(?:src|href)="(/static/[^"]+)"', read(pages, "/"))
    assert len(address) == 4
    for one in address:
        answer = pages.get(one)
        assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)
    for name in ("vendor/htmx.LICENSE", "vendor/uPlot.LICENSE"):
        assert pages.get(f"/static/any/{name}").headers["cache-control"] == "no-cache"
    assert pages.get("/static/any/%2e%2e/app.py").status_code == 404


def test_long_pages_are_compressed(pages: TestClient) -> None:
    answer = pages.get("/results", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    plain = pages.get("/results", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers


def test_a_store_that_cannot_be_read_is_reported_as_busy(tmp_path: Path) -> None:
    answer = site(sources(tmp_path / "nothing")).get("/results")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "The store cannot be read now; try again." in text_of(answer.text)


def test_a_trace_leads_to_its_only_result(pages: TestClient) -> None:
    page = path_of("failed")
    answer = pages.get(page.rpartition("/")[0])
    assert (answer.status_code, answer.headers["location"]) == (303, page)
    assert pages.get(f"/results/{'0' * 32}").status_code == 404


def test_a_trace_with_several_results_leads_to_their_list(tmp_path: Path) -> None:
    two = [evaluation("a"), changed("a", span_id="b" * 16)]
    with opened(tmp_path) as store:
        commit(store, two)
    found = site(sources(tmp_path))
    trace = two[0].invocation.trace_id
    assert found.get(f"/results/{trace}").headers["location"] == f"/results?trace_id={trace}"
    listed = read(found, f"/results?trace_id={trace}")
    assert listed.count("find_order.order differs") == 2


def test_the_list_of_a_trace_stays_with_its_tenant(tmp_path: Path) -> None:
    two = [changed(name, trace_id="c" * 32, span_id=name * 16, tenant="t") for name in "ab"]
    with opened(tmp_path) as store:
        commit(store, [*two, changed("c", trace_id="c" * 32, tenant="u")])
    address = f"/results/{'c' * 32}?tenant=t"
    led = site(sources(tmp_path)).get(address).headers["location"]
    assert led == f"/results?trace_id={'c' * 32}&tenant=t"


@pytest.mark.parametrize("path", sorted(VIEWS))
def test_a_page_asked_for_by_an_unknown_name_is_refused(folder: Path, path: str) -> None:
    found = site(sources(folder), Authorization(None, None, LOOPBACK))
    answer = found.get(path, headers={"host": "evil.example"})
    assert answer.status_code == 403
    assert "ui.hosts" in text_of(answer.text)
    assert found.get(path, headers={"host": "localhost:9464"}).status_code in (200, 404)


def test_the_scenario_page_links_to_its_dashboard(folder: Path) -> None:
    address = "https://grafana.example/d/x?var-agent={agent}&var-scenario={scenario}"
    page = site(sources(folder), dashboard_url=address).get("/scenario?agent=a%26b&scenario=c d")
    link = "https://grafana.example/d/x?var-agent=a%26b&var-scenario=c%20d"
    assert f'href="{html.escape(link)}"' in page.text


@pytest.mark.parametrize("path", ["/", "/scenario?agent=support&scenario=parcel"])
def test_a_standby_says_so_and_shows_what_is_stored(tmp_path: Path, path: str) -> None:
    with opened(tmp_path) as store:
        commit(store, EVENTS)
        answer = site(sources(tmp_path, is_standby=True)).get(path)
    text = text_of(answer.text)
    assert answer.status_code == 200
    assert "This process is a standby. Only the gauge knows recent scores" in text
    assert ("find_order" in text) is (path != "/")  # the overview has failures of today
    assert "No results yet" not in text
    assert "Telemetry so far" not in text
    with opened(tmp_path):
        assert "standby" not in text_of(site(sources(tmp_path)).get(path).text)
