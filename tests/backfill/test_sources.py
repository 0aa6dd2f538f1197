"""Every source gives the traces that began in the period, once, with all their spans."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.offline.trace_files import UnreadableFileError
from pathgauge.collector.service.backfill.history import Source, SourceError
from pathgauge.collector.service.backfill.slices import SECOND, slices
from pathgauge.collector.service.backfill.sources.address import open_source
from pathgauge.collector.service.backfill.sources.http import HttpClient
from support.exports import jaeger_json, tempo_json
from support.past import START, Archive, archive
from support.thinning import thinned
from support.trace_servers import Server, clickhouse, jaeger, tempo, trace_server

HOUR = 3600
SINCE, UNTIL = START * SECOND, (START + HOUR) * SECOND
PAST = archive(120, HOUR)
SERVERS: Mapping[str, Callable[[Archive], Any]] = {
    "jaeger": jaeger,
    "tempo": tempo,
    "clickhouse": clickhouse,
}
DATABASE = {"clickhouse": "/otel"}


@contextmanager
def opened(kind: str, folder: Path, **environment: str) -> Iterator[tuple[Source, Server]]:
    with trace_server(SERVERS[kind](PAST)) as server:
        address = f"{kind}://127.0.0.1:{server.port}{DATABASE.get(kind, '')}"
        source = open_source(address, folder / "spool.db", environment=environment)
        yield source, server
        source.close()


def read(source: Source, since: int, until: int, limit: int = 1000) -> dict[str, int]:
    """The number of spans of each trace; none may come twice."""
    found: dict[str, int] = {}
    for part in slices(source, since, until, limit):
        assert part.found.rejected == 0
        for trace in part.found.traces:
            assert trace.trace_id not in found
            found[trace.trace_id] = len(trace.spans)
    return found


def expected(since: int = SINCE, until: int = UNTIL) -> dict[str, int]:
    return {
        one.trace_id: one.body.count(bytes.fromhex(one.trace_id))
        for one in PAST.traces
        if since <= one.start < until
    }


@pytest.mark.parametrize("kind", SERVERS)
def test_each_trace_of_the_period_is_read_once(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as (source, _):
        assert read(source, SINCE, UNTIL) == expected()
        middle = SINCE + 1111 * SECOND, SINCE + 2222 * SECOND
        assert read(source, *middle) == expected(*middle)


@pytest.mark.slow
@pytest.mark.parametrize("kind", thinned(SERVERS, 1))
def test_a_slice_with_too_many_traces_is_divided(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as (source, server):
        assert read(source, SINCE, UNTIL, limit=3) == expected()
        of_all = len(server.asked)
        read(source, SINCE, UNTIL, limit=1000)
    assert of_all > 2 * (len(server.asked) - of_all) or kind == "tempo"


@pytest.mark.parametrize("kind", SERVERS)
def test_more_traces_in_a_second_than_fit_into_memory_are_an_error(
    kind: str, tmp_path: Path
) -> None:
    at_once = archive(200, 0.5)
    with trace_server(SERVERS[kind](at_once)) as server:
        address = f"{kind}://127.0.0.1:{server.port}{DATABASE.get(kind, '')}"
        source = open_source(address, tmp_path / "spool.db", environment={})
        with pytest.raises(SourceError, match="found more than 64 traces within a second"):
            list(slices(source, SINCE, UNTIL, limit=1))
        source.close()


@pytest.mark.parametrize("kind", SERVERS)
def test_a_trace_that_began_before_the_slice_is_left_to_the_one_before(
    kind: str, tmp_path: Path
) -> None:
    first = PAST.traces[0]
    with opened(kind, tmp_path) as (source, _):
        found = source.read(first.start + 1000, first.start + SECOND, 10)
    assert first.trace_id not in {trace.trace_id for trace in found.traces}


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_that_is_busy_is_asked_again(kind: str, tmp_path: Path) -> None:
    pauses: list[float] = []
    with opened(kind, tmp_path) as (source, server):
        server.failures += [503, 429]
        client: HttpClient = source._client  # type: ignore[attr-defined]
        client._sleep = pauses.append
        assert read(source, SINCE, SINCE + 600 * SECOND) == expected(SINCE, SINCE + 600 * SECOND)
    assert sum(pauses) > 1


@pytest.mark.parametrize("kind", SERVERS)
def test_a_refusal_is_reported_with_what_the_server_says(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as (source, server):
        server.failures.append(403)
        with pytest.raises(SourceError, match=r"found status 403 \(not now\), expected traces"):
            read(source, SINCE, UNTIL)


def test_credentials_come_from_the_environment(tmp_path: Path) -> None:
    given = {"PATHGAUGE_BACKFILL_HEADERS": "X-Scope-OrgID=shop", "PATHGAUGE_BACKFILL_TOKEN": "s"}
    with opened("tempo", tmp_path, **given) as (source, server):
        read(source, SINCE, SINCE + SECOND)
        assert {one["x-scope-orgid"] for one in server.headers} == {"shop"}
        assert {one["authorization"] for one in server.headers} == {"Bearer s"}
    given = {"CLICKHOUSE_USER": "reader", "CLICKHOUSE_PASSWORD": "secret"}
    with opened("clickhouse", tmp_path, **given) as (source, server):
        read(source, SINCE, SINCE + SECOND)
        [names] = {(one["x-clickhouse-user"], one["x-clickhouse-key"]) for one in server.headers}
        assert names == ("reader", "secret")
        assert "secret" not in source.name


def test_options_of_an_address_choose_services_queries_and_tables(tmp_path: Path) -> None:
    with trace_server(jaeger(PAST)) as server:
        address = f"jaeger://127.0.0.1:{server.port}?service=guide"
        source = open_source(address, tmp_path / "spool.db", environment={})
        of_guide = {one.trace_id for one in PAST.traces if one.service == "guide"}
        assert read(source, SINCE, UNTIL).keys() == of_guide
        source.close()
    with trace_server(tempo(PAST)) as server:
        address = f"tempo://127.0.0.1:{server.port}/base?q=%7Bname%3D~%22invoke.*%22%7D"
        source = open_source(address, tmp_path / "spool.db", environment={})
        with pytest.raises(SourceError):
            read(source, SINCE, UNTIL)  # the server knows no /base/api/search
        assert server.asked[0] == (
            "/base/api/search",
            {**server.asked[0][1], "q": '{name=~"invoke.*"}'},
        )
        source.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("kafka://host:9092", "found no known source, expected file://PATTERN, jaeger://"),
        ("jaeger://", "found no known source"),
        ("jaeger://host:port", "found no address"),
        ("tempo://user:secret@host", "tempo://host: found credentials, expected them in PATHGAUGE"),
        ("tempo://host?query={}", "found the option query, expected q"),
    ],
)
def test_an_address_that_names_no_source_is_refused(
    address: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError) as raised:
        open_source(address, tmp_path / "spool.db", environment={})
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
@pytest.mark.parametrize("answer", [[], "text", {"data": "none"}, {"traces": {}}])
def test_a_server_of_another_kind_is_no_empty_source(
    kind: str, answer: Any, tmp_path: Path
) -> None:
    with trace_server(lambda *_: (200, json.dumps(answer).encode())) as server:
        source = open_source(f"{kind}://127.0.0.1:{server.port}", tmp_path / "s", environment={})
        with pytest.raises(SourceError, match="found no list of"):
            read(source, SINCE, UNTIL)
        source.close()


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (200, b'{"data": null, "errors": [{"msg": "no storage"}]}', "Jaeger says: no storage"),
        (200, b'{"data": null, "errors": ["no"]}', "Jaeger says: ['no']"),
        (200, b" ", "found no JSON, but an empty answer"),
        (200, b"<!doctype html>", "found no JSON, but a page; does the address lack the path"),
        (404, b"", "found no list of data, but status 404, expected the query service of Jaeger"),
    ],
)
def test_what_is_wrong_with_an_answer_of_jaeger_is_named(
    status: int, answer: bytes, message: str, tmp_path: Path
) -> None:
    with trace_server(lambda *_: (status, answer)) as server:
        source = open_source(f"jaeger://127.0.0.1:{server.port}", tmp_path / "s", environment={})
        with pytest.raises(SourceError) as raised:
            read(source, SINCE, UNTIL)
        source.close()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("services", "option", "notes"),
    [
        (None, "", ["Jaeger knows no service, so no span has reached its storage"]),
        (["agent"], "", []),
        (["agent"], "?service=agnt", ["Jaeger knows no service 'agnt'; did you mean 'agent'?"]),
    ],
)
def test_an_empty_jaeger_says_why(
    services: list[str] | None, option: str, notes: list[str], tmp_path: Path
) -> None:
    def answer(path: str, _: Any) -> tuple[int, bytes]:
        return 200, json.dumps({"data": services if path == "/api/services" else []}).encode()

    with trace_server(answer) as server:
        address = f"jaeger://127.0.0.1:{server.port}"
        source = open_source(f"{address}{option}", tmp_path / "s", environment={})
        found = [source.read(SINCE, UNTIL, 10) for _ in range(2)]
        source.close()
    url = address.replace("jaeger", "http")
    assert [list(one.notes) for one in found] == [[f"{url}: {note}" for note in notes]] * 2
    assert found[0].traces == ()


@pytest.mark.parametrize("kind", SERVERS)
def test_a_page_is_no_empty_source(kind: str, tmp_path: Path) -> None:
    with trace_server(lambda *_: (200, b"<html>")) as server:
        source = open_source(f"{kind}://127.0.0.1:{server.port}", tmp_path / "s", environment={})
        with pytest.raises(SourceError, match="found no JSON"):
            read(source, SINCE, UNTIL)
        source.close()


@pytest.mark.parametrize("pattern", ["*.json*", "", "**/*"])
def test_files_of_several_formats_in_any_order_are_one_past(pattern: str, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    bodies = [one.body for one in PAST.traces]
    (folder / "a.json").write_bytes(jaeger_json(*bodies[80:]))
    (folder / "b.json.gz").write_bytes(gzip.compress(tempo_json(*bodies[40:80])))
    (folder / "c.jsonl").write_bytes(b"\n".join(tempo_json(body) for body in bodies[:40]))
    source = open_source(f"file://{folder}/{pattern}", tmp_path / "spool.db", environment={})
    assert not (tmp_path / "spool.db").exists()  # a kill would leave what is not redacted
    assert read(source, SINCE, UNTIL, limit=10) == expected()
    assert source.begin(0, UNTIL) == SINCE
    source.close()
    assert not (tmp_path / "spool.db").exists()


def test_a_trace_may_be_in_several_files(tmp_path: Path) -> None:
    body = PAST.traces[0].body
    document = json.loads(jaeger_json(body))["data"][0]
    for number, span in enumerate(document["spans"]):
        part = {**document, "spans": [span]}
        (tmp_path / f"{number}.json").write_text(json.dumps(part))
    source = open_source(f"file://{tmp_path}/*.json", tmp_path / "spool.db", environment={})
    assert read(source, SINCE, UNTIL) == {PAST.traces[0].trace_id: len(document["spans"])}
    source.close()


def test_files_that_hold_no_traces_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="found no file"):
        open_source(f"file://{tmp_path}/*.json", tmp_path / "spool.db", environment={})
    (tmp_path / "notes.json").write_text('{"a": 1}')
    with pytest.raises(UnreadableFileError, match=r"notes\.json: found a JSON object with 'a'"):
        open_source(f"file://{tmp_path}/*.json", tmp_path / "spool.db", environment={})
    assert not (tmp_path / "spool.db").exists()
