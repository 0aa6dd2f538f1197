"""Keys of attributes are found in encoded records without decoding them."""

import pytest
from hypothesis import given, strategies as st
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pathgauge.collector.core.otlp.key_prefixes import KeyPrefixes
from pathgauge.collector.core.otlp.spans import encode_attributes

KEYS = st.text(st.sampled_from("ab.*"), max_size=4) | st.text("b", min_size=126, max_size=130)


@given(
    st.lists(st.text(st.sampled_from("ab.*"), min_size=1, max_size=2), max_size=3),
    st.lists(KEYS),
)
def test_a_key_is_found_if_and_only_if_it_begins_so(prefixes: list[str], keys: list[str]) -> None:
    raw = Span(
        attributes=[KeyValue(key=key) for key in keys], start_time_unix_nano=1
    ).SerializeToString()
    expected = any(key.startswith(tuple(prefixes)) for key in keys)
    assert KeyPrefixes(prefixes).may_be_in(raw) == expected


ATTRIBUTES = encode_attributes({"size": 7, "gen_ai.system": "x" * 300})


@pytest.mark.parametrize(
    "record",
    [
        Span(name="chat", attributes=ATTRIBUTES),
        Span(name="chat", events=[Span.Event(name="choice", attributes=ATTRIBUTES)]),
        Span(attributes=encode_attributes({"a": {"gen_ai.system": "x"}})),
        LogRecord(attributes=ATTRIBUTES),
    ],
)
def test_keys_of_records_of_their_events_and_of_objects_are_found(record: Span | LogRecord) -> None:
    raw = record.SerializeToString()
    assert KeyPrefixes(["other", "gen_ai."]).may_be_in(raw)
    assert not KeyPrefixes(["en_ai.", "gen_ai.system."]).may_be_in(raw)
