"""`POST /feedback` takes answers of people from whom it may, in a bounded form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from pathgauge.collector.api.app import routes
from pathgauge.collector.api.authorization import COOKIE, LOOPBACK, Authorization
from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.api.feedback import FeedbackIntake
from pathgauge.collector.api.posting import MAX_BODY_BYTES
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.redaction import Redactor, Rules
from pathgauge.collector.core.redaction.rules import KeyRule
from pathgauge.collector.core.redaction.values import Values
from pathgauge.collector.service.feedback import redacted
from pathgauge.collector.service.web.app import create_app
from pathgauge.collector.store import Selection, StoreError
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import log, span_id, trace_id
from support.api_client import NORTH, READER, SOUTH, get, sources, with_tokens
from support.dialects import INSTALLED
from support.evaluated import commit, evaluation, opened

TRACE, SPAN = trace_id("a"), span_id("a")
UP = {"trace_id": TRACE, "span_id": SPAN, "thumb": "up"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with opened(tmp_path / "store") as store:
        commit(store, [evaluation("a"), evaluation("n", tenant="north")])
        yield store


def api(
    store: SqliteStore,
    authorization: Authorization | None = None,
    tenants: frozenset[str] = frozenset({""}),
    counts: Counter[tuple[str, str]] | None = None,
) -> TestClient:
    counted = Counter() if counts is None else counts
    intake = FeedbackIntake(
        store.record_feedback, tenants, lambda *labels: counted.update([labels])
    )
    found = sources(store._folder)
    allowed = authorization or Authorization(None, None)
    pages = routes(found, allowed, QueryThread(found.is_busy), intake)
    app = create_app(CollectorRegistry(), with_own_authorization=pages)
    return TestClient(app, base_url="http://localhost")


def post(client: TestClient, body: Any, **headers: str) -> tuple[int, Any]:
    answer = client.post(f"{PREFIX}/feedback", json=body, headers=headers)
    return answer.status_code, answer.json()


def stored(client: TestClient, subject: str = f"trace_id={TRACE}", **headers: str) -> Any:
    return get(client, f"/feedback?{subject}", **headers)["answers"]


def test_an_answer_is_taken_and_given_back(store: SqliteStore) -> None:
    client = api(store)
    body = {
        "trace_id": TRACE.upper(),
        "span_id": SPAN,
        "name": "stars",
        "rating": 4,
        "scale": [1, 5],
        "comment": "fine",
        "rater": "ann",
        "time": "2026-11-23T03:00:00Z",
    }
    assert post(client, body) == (201, {"outcome": "created"})
    [found] = stored(client)
    assert found.pop("rater") not in (None, "ann")
    assert found == {
        "trace_id": TRACE,
        "span_id": SPAN,
        "conversation_id": None,
        "tenant": "",
        "name": "stars",
        "label": None,
        "rating": 4.0,
        "scale": [1.0, 5.0],
        "passed": True,
        "comment": "fine",
        "source": "api",
        "time": "2026-11-23T03:00:00Z",
    }


def test_the_agreement_is_that_of_the_stored_pairs(store: SqliteStore) -> None:
    client = api(store)
    post(client, {**UP, "thumb": "down"})
    found = get(client, "/agreement")
    [metric] = found["metrics"]
    assert (metric["metric"], metric["pairs"], metric["neither_passed"]) == ("trajectory", 1, 1)
    assert (metric["kappa"], metric["lower"], metric["upper"]) == (None, None, None)
    assert found["answers"] == {"paired": 1}


def test_a_result_says_how_many_people_call_it_good_or_bad(store: SqliteStore) -> None:
    client = api(store)
    post(client, {**UP, "rater": "ann"})
    post(client, {**UP, "rater": "bob"})
    post(client, {**UP, "rater": "cat", "thumb": "down"})
    [found] = get(client, f"/results/{TRACE}")["results"]
    assert found["people"] == {"good": 2, "bad": 1}


def test_an_id_makes_a_request_repeatable(store: SqliteStore) -> None:
    client = api(store)
    assert post(client, {**UP, "id": "1"}) == (201, {"outcome": "created"})
    assert post(client, {**UP, "id": "2", "thumb": "down"}) == (200, {"outcome": "replaced"})
    assert post(client, {**UP, "id": "1"}) == (200, {"outcome": "repeated"})
    status, problem = post(client, {**UP, "id": "1", "thumb": "down"})
    assert (status, problem["title"]) == (409, "Conflict")
    assert [one["passed"] for one in stored(client)] == [False]


def test_what_is_said_of_a_purged_trace_is_refused_as_telemetry_is_dropped(
    store: SqliteStore,
) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    client = api(store, counts=counts)
    assert post(client, UP)[0] == 201
    store.purge(Selection(trace_id=TRACE))
    status, problem = post(client, UP)
    assert (status, problem) == (
        410,
        {
            "type": "about:blank",
            "title": "Gone",
            "status": 410,
            "detail": "trace_id: the trace was purged; nothing about it is kept",
        },
    )
    assert counts == {("api", "201"): 1, ("api", "410"): 1}
    assert stored(client) == []
    assert post(client, {**UP, "trace_id": trace_id("other")})[0] == 201


def test_answers_are_found_by_ids_in_upper_case(store: SqliteStore) -> None:
    client = api(store)
    assert post(client, UP)[0] == 201
    found = stored(client, f"trace_id={UP['trace_id'].upper()}&span_id={UP['span_id'].upper()}")
    assert [one["passed"] for one in found] == [True]


def test_a_conversation_is_a_subject(store: SqliteStore) -> None:
    client = api(store)
    assert post(client, {"conversation_id": "talk", "label": "resolved"})[0] == 201
    [found] = stored(client, "conversation_id=talk")
    assert (found["conversation_id"], found["passed"]) == ("talk", True)


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"trace_id": None}, "Input should have exactly one of trace_id and conversation_id"),
        ({"conversation_id": "c"}, "Input should have exactly one of trace_id and conversation_id"),
        ({"thumb": None}, "Input should have a thumb, a label or a rating"),
        ({"label": "x"}, "Input should have one of thumb and label"),
        ({"trace_id": "0" * 32}, "trace_id: Input should have an id that is not zero"),
        ({"span_id": "zz"}, "span_id: String should match pattern '^[0-9a-f]{16}$'"),
        ({"scale": [5, 1]}, "Input should have a scale whose second number is larger"),
        ({"rater": "x" * 501}, "rater: String should have at most 500 characters"),
        ({"comment": "x" * 2001}, "comment: String should have at most 2000 characters"),
        ({"rating": True}, "rating: Input should be a valid number"),
        ({"rating": "4"}, "rating: Input should be a valid number"),
        ({"scale": [False, 1]}, "scale.0: Input should be a valid number"),
        ({"time": "1969-12-31T23:59:59Z"}, "time: Input should have a time since 1970"),
        ({"time": "0001-01-01T00:00:00+14:00"}, "time: Input should have a time since 1970"),
        (
            {"thumbs": "up"},
            "thumbs: found an unknown name, expected one of id, trace_id, span_id, conversation_id,"
            " name, thumb, label, rating, scale, comment, rater, time, tenant; did you mean"
            " 'thumb'?",
        ),
        ({"tenant": "north"}, "tenant: found 'north', expected a configured one"),
    ],
)
def test_mistakes_get_a_problem(store: SqliteStore, change: dict[str, Any], detail: str) -> None:
    status, problem = post(api(store), {**UP, **change})
    assert (status, problem["status"]) == (422, 422)
    assert problem["detail"] == detail


def test_a_body_that_is_no_object_gets_a_problem_in_words_of_json(store: SqliteStore) -> None:
    content, headers = "[]", {"content-type": "application/json"}
    answer = api(store).post(f"{PREFIX}/feedback", content=content, headers=headers)
    detail = "found an array, expected an object"
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


@pytest.mark.parametrize(
    ("headers", "found"), [({}, "no value"), ({"content-type": "text/plain"}, "'text/plain'")]
)
def test_a_body_of_another_type_gets_a_problem_in_plain_words(
    store: SqliteStore, headers: dict[str, str], found: str
) -> None:
    answer = api(store).post(f"{PREFIX}/feedback", content=json.dumps(UP), headers=headers)
    detail = f"content-type: found {found}, expected application/json"
    assert (answer.status_code, answer.json()["detail"]) == (415, detail)


def test_other_bodies_are_refused_and_counted(store: SqliteStore) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    client = api(store, counts=counts)
    body = json.dumps(UP)
    for content, media_type in (
        (body, "text/plain"),
        (body, "application/x-www-form-urlencoded"),
        (body + " " * MAX_BODY_BYTES, "application/json"),
        ("{", "application/json"),
        ("[]", "application/json"),
        (body, "application/json; charset=utf-8"),
    ):
        client.post(f"{PREFIX}/feedback", content=content, headers={"content-type": media_type})
    codes = {"415": 2, "413": 1, "422": 2, "201": 1}
    assert counts == {("api", code): number for code, number in codes.items()}


def test_a_token_answers_for_its_tenant_only(store: SqliteStore, tmp_path: Path) -> None:
    client = api(store, with_tokens(tmp_path), frozenset({"north", "south"}))

    def sent(token: str, body: Any) -> int:
        return post(client, body, authorization=f"Bearer {token}")[0]

    about = {"trace_id": trace_id("n"), "thumb": "up"}
    assert post(client, about)[0] == 401
    assert sent("unknown-token-000", about) == 401
    assert sent(NORTH, about) == 201
    assert sent(SOUTH, {**about, "tenant": "north"}) == 403
    assert sent(SOUTH, about) == 201  # about its own trace with this id
    assert sent(READER, about) == 422
    assert sent(READER, {**about, "tenant": "south", "rater": "x"}) == 201
    for token, tenants in ((NORTH, {"north"}), (SOUTH, {"south"}), (READER, {"north", "south"})):
        found = stored(client, f"trace_id={trace_id('n')}", authorization=f"Bearer {token}")
        assert {one["tenant"] for one in found} == tenants
    header = {"cookie": f"{COOKIE}={NORTH}"}
    assert post(client, {**about, "rater": "y"}, **header)[0] == 201


def test_another_host_name_is_refused(store: SqliteStore) -> None:
    client = api(store, Authorization(None, None, LOOPBACK))
    assert post(client, UP)[0] == 201
    assert post(client, UP, host="evil.example")[0] == 403


def test_without_a_place_for_it_no_feedback_is_taken(store: SqliteStore) -> None:
    found = sources(store._folder)
    pages = routes(found, Authorization(None, None), QueryThread(found.is_busy))
    client = TestClient(create_app(CollectorRegistry(), with_own_authorization=pages))
    status, problem = post(client, UP)
    assert (status, "no feedback is taken" in problem["detail"]) == (409, True)


def test_what_cannot_be_stored_is_not_acknowledged(store: SqliteStore) -> None:
    def full(answers: object) -> Any:
        raise StoreError("/secret/path: full")

    found = sources(store._folder)
    pages = routes(
        found, Authorization(None, None), QueryThread(found.is_busy), FeedbackIntake(full)
    )
    client = TestClient(create_app(CollectorRegistry(), with_own_authorization=pages))
    answer = client.post(f"{PREFIX}/feedback", json=UP)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "secret" not in answer.text


def test_the_document_describes_it(store: SqliteStore) -> None:
    document = get(api(store), "/openapi.json")
    posting = document["paths"]["/feedback"]["post"]
    [content] = posting["requestBody"]["content"].values()
    name = content["schema"]["$ref"].rpartition("/")[2]
    assert set(document["components"]["schemas"][name]["properties"]) >= {"thumb", "rating", "id"}
    assert {"200", "201", "401", "409", "413", "415", "422", "503"} <= set(posting["responses"])


@pytest.mark.parametrize("content", [True, False])
def test_texts_are_redacted_as_telemetry_is(*, content: bool) -> None:
    redactor = Redactor(Rules(detectors={"email": "mask"}, content=content), {}, b"salt", INSTALLED)
    given = Answer("", TRACE, label="up", name="helpful", comment="ask ann@example.org", rater="r")
    found = redacted(redactor, given)
    assert replace(found, comment=None) == replace(given, comment=None)
    assert "ann@" not in (found.comment or "")
    assert (found.comment is not None) is content


@pytest.mark.parametrize(
    ("rules", "key", "name"),
    [
        (Rules(detectors={"email": "mask"}), "gen_ai.conversation.id", "ann@example.org"),
        (Rules(attributes=(KeyRule("session.id", "hash"),)), "session.id", "talk 17"),
        (Rules(), "session.id", "talk 17"),
    ],
)
def test_the_id_of_a_conversation_is_that_of_the_redacted_telemetry(
    rules: Rules, key: str, name: str
) -> None:
    redactor = Redactor(rules, {}, b"salt", INSTALLED)
    [sent] = redactor.logs([log("", {key: name})]).records
    given = Answer("", "", conversation_id=name, label="up", name="helpful")
    found = redacted(redactor, given)
    assert found == replace(given, conversation_id=sent.attributes[key])


GIVEN = Answer(
    "", TRACE, label="up", name="of ann@example.org", comment="ask ann@example.org", id="api:7"
)


@pytest.mark.parametrize(
    "rules",
    [
        Rules(detectors={"email": "drop"}),
        Rules(attributes=(KeyRule("gen_ai.evaluation.*", "drop"),)),
    ],
)
def test_texts_that_redaction_removes_are_not_kept(rules: Rules) -> None:
    found = redacted(Redactor(rules, {}, b"salt", INSTALLED), GIVEN)
    assert (found.name, found.comment) == ("feedback", None)


def test_nothing_is_kept_of_an_answer_that_cannot_be_redacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Values, "pairs", lambda *_: 1 / 0)
    found = redacted(Redactor(Rules(), {}, b"salt", INSTALLED), GIVEN)
    assert (found.name, found.label, found.comment) == ("feedback", None, None)


@pytest.mark.parametrize(
    "rules",
    [
        Rules(detectors={"email": "drop"}),
        Rules(attributes=(KeyRule("*", "drop"),)),
    ],
)
def test_an_answer_about_a_conversation_that_redaction_removes_is_refused(rules: Rules) -> None:
    given = Answer("", "", conversation_id="ann@example.org", label="up")
    with pytest.raises(ProblemError, match="redaction removes it") as refused:
        redacted(Redactor(rules, {}, b"salt", INSTALLED), given)
    assert refused.value.status == 409


def test_the_id_that_a_client_chose_is_redacted_and_stays_unique() -> None:
    redactor = Redactor(Rules(), {}, b"salt", INSTALLED)
    ids = [f"api:{name}@example.org run 1" for name in ("ann", "bob", "ann")]
    ann, bob, again = [redacted(redactor, replace(GIVEN, id=one)).id for one in ids]
    assert ann == again != bob
    assert "@" not in f"{ann}{bob}"
    assert redacted(redactor, GIVEN).id == GIVEN.id
    dropping = Redactor(Rules(detectors={"email": "drop"}), {}, b"salt", INSTALLED)
    ann, bob, again = [redacted(dropping, replace(GIVEN, id=one)).id for one in ids]
    assert ann == again != bob
    assert "@" not in f"{ann}{bob}"
