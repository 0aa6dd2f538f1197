"""Python literals: what `repr` writes is read, in linear time; nothing is executed."""

from __future__ import annotations

import ast
import math
import warnings
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from pathgauge.collector.core.invocations.dialects.openai_agents import read_messages
from pathgauge.collector.core.invocations.messages.literals import (
    MAX_COLLIDING_KEYS,
    MAX_LEVELS,
    MAX_LITERAL_CHARACTERS,
    Call,
    Name,
    call,
    fields,
    literal,
)
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import decode
from support.hostile_literals import AROUND, INSIDE, REPEATED, written
from support.proportion import in_proportion

SIZE = 16_384

CONSTANTS = {"True", "False", "None"}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
)
KEYS = SCALARS | st.tuples(SCALARS, SCALARS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner) | st.sets(KEYS)
    ),
    max_leaves=20,
)


def by_python(text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # escapes that mean nothing
        return ast.literal_eval(text.strip())


def exact(value: Any) -> Any:
    """For comparing: `1`, `1.0` and `True` are equal, and the order of a set means nothing."""
    if isinstance(value, list | tuple | set):
        inner = [exact(item) for item in value]
        return type(value), frozenset(inner) if isinstance(value, set) else tuple(inner)
    if isinstance(value, dict):
        return tuple((exact(key), exact(item)) for key, item in value.items())
    return repr(value)


@given(VALUES)
def test_what_repr_writes_is_read_as_it_was(value: Any) -> None:
    assert exact(literal(repr(value))) == exact(value)


@given(
    st.lists(st.sampled_from(REPEATED), max_size=12).map("".join), st.sampled_from(sorted(AROUND))
)
def test_what_is_read_is_what_python_reads(inside: str, around: str) -> None:
    before, after = AROUND[around]
    text = before + inside + after
    try:
        read = literal(text)
    except ValueError:
        return
    assert exact(read) == exact(by_python(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': [1, -2, +3, 1.5e3, .5, 1_000], 'b': (None, True, ...)}", None),
        ("[0x1F, 0o17, 0b11, - 1]", None),
        ("['it''s', \"it's\" 'x', u'a', r'\\d', '''a'b''', \"\"\"a\nb\"\"\"]", None),
        ("[b'a' b'\\x00', rb'\\x', B'\\377']", None),
        (r"['\n\t\\\'\"', '\x41A\U00000041\101', '\N{BULLET}', '\d', '\ud83d']", None),
        ("[(), (1), (1,), [], {}, {1}, {1: 2,}, set()]", None),
        (" \n[ 1 ,\r\n 2 ]\f\n", [1, 2]),
        ("{'a': 1}, {'b': 2}", None),
        ("{'a': 1, 'a': 2}", {"a": 2}),
        ("'a\\\nb'", "ab"),
        ("'''a\r\nb'''", "a\nb"),
    ],
)
def test_values_that_are_read(text: str, value: Any) -> None:
    expected = by_python(text) if value is None else value
    assert repr(literal(text)) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ",", "[", "]", "[1", "1]", "[1)", "[,]", "[1,,]", "[1 2]", "{1:}", "{:1}"),
        *("{1:2, 3}", "{1, 2:3}", "{1:2:3}", "[1:2]", "1:2", "a=1", "[a=1]", "{a: 1}", "a", "[a]"),
        *(
            "f(1)",
            "set(1)",
            "set(a=1)",
            "[set]",
            "f'a'",
            "['a' f'{b}']",
            "1+2",
            "1+2j",
            "1j",
            "--1",
        ),
        *("'a", "'a\nb'", "'a' b'a'", "b'é'", "'\\x4'", "'\\u004'", "'\\N{NO SUCH}'", "'\\N'"),
        *(
            "'\\U00110000'",
            "b'\\400'",
            "b'\\x4'",
            "012",
            "1__0",
            "1.2.3",
            "0x",
            "1a",
            "0xg",
            "'\ud800'",
        ),
        *("{[]: 1}", "{{}}", "{([],): 1}", "[1] # a", "[1, \\\n2]", "<A: 1>", "[nan]", "'''a'"),
    ],
)
def test_text_that_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        literal(text)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{1:", "}"), ("(", ",)")])
def test_brackets_are_read_up_to_a_depth(opening: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return opening * levels + "1" + closing * levels

    assert repr(literal(nested(MAX_LEVELS))) == repr(by_python(nested(MAX_LEVELS)))
    with pytest.raises(ValueError, match="brackets inside each other"):
        literal(nested(MAX_LEVELS + 1))


def test_text_is_read_up_to_a_length() -> None:
    longest = "'" + "a" * (MAX_LITERAL_CHARACTERS - 2) + "'"
    assert literal(longest) == longest[1:-1]
    with pytest.raises(ValueError, match="expected at most 131,072"):
        literal(longest + " ")


@pytest.mark.parametrize("key", ["(0, {})", str(2**61) + "{:03}"])
def test_keys_are_read_unless_a_sender_could_give_too_many_of_them_the_same_hash(key: str) -> None:
    def keys(count: int) -> list[str]:
        return [key.format(number) for number in range(count)]

    most = keys(MAX_COLLIDING_KEYS)
    assert len(literal("{" + ",".join(f"{one}: 0" for one in most) + "}")) == MAX_COLLIDING_KEYS
    assert len(literal("{" + ",".join(most) + "}")) == MAX_COLLIDING_KEYS
    with pytest.raises(ValueError, match="found 257 keys"):
        literal("{" + ",".join(keys(MAX_COLLIDING_KEYS + 1)) + "}")


def test_any_number_of_texts_small_integers_and_fractions_may_be_keys() -> None:
    keys = [key for number in range(1_000) for key in (str(number), number, number + 0.5)]
    value = dict.fromkeys(keys, 0)
    assert literal(repr(value)) == value


def test_a_number_that_is_too_long_is_refused_in_any_notation() -> None:
    assert literal("9" * 3_500) == int("9" * 3_500)
    for text in ("9" * 3_501, "0x" + "f" * 3_500, "0." + "1" * 3_500, "1e" + "9" * 3_500):
        with pytest.raises(ValueError, match="found a number of"):
            literal(text)
    assert str(literal("0x" + "f" * 3_498))
    assert math.isinf(literal("1e999"))


def test_a_call_is_read_and_not_executed() -> None:
    text = "Message(role='user', at=datetime.datetime(2024, 1, 2), parts=[Part(1, x=nan)], n=-1)"
    date = Call("datetime.datetime", [2024, 1, 2], {})
    part = Call("Part", [1], {"x": Name("nan")})
    assert call(text) == Call("Message", [], {"role": "user", "at": date, "parts": [part], "n": -1})


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a",
            "1",
            "[f()]",
            "f",
            "f(",
            "f(a=1, 2)",
            "f(a=)",
            "f(=1)",
            "f(1=1)",
            "f(a=b=1)",
            "f(*a)",
        ),
        *("f(**a)", "f()()", "f().a", "f(f'a')", "f(), g()", "f(a=<A: 1>)", "f{1}", "{}()"),
    ],
)
def test_text_that_is_no_call_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        call(text)


def test_a_call_of_the_agents_sdk_has_only_texts_as_its_fields() -> None:
    text = "ResponseFunctionToolCall(arguments='{{\"a\": 1}}', call_id='1', name='t', x=Y(z=[{}]))"
    [message] = read_messages([{"role": "assistant", "content": text.format("None")}], "assistant")
    assert [(one.name, one.arguments, one.id) for one in message.calls] == [("t", {"a": 1}, "1")]
    [message] = read_messages([{"role": "assistant", "content": text.format("f''")}], "assistant")
    assert message.calls == ()


def decode_value(text: str) -> None:
    decode(text)


def test_objects_without_a_value_are_names_and_members_of_enumerations_their_values() -> None:
    function = "<function <lambda> at 0x7f>"
    text = f"Tool(run={function}, kind=<class 'a.B'>, role=<Role.USER: 'user'>, n=<a.N.X: 1>)"
    members = {"run": Name(function), "kind": Name("<class 'a.B'>"), "role": "user", "n": 1}
    assert call(text) == Call("Tool", [], members)


def test_a_model_writes_fields_with_spaces_between_them() -> None:
    text = "id='a b=1' usage=Usage(n=1) role=<Role.USER: 'user'> at=None more={'a': [1, 2]}"
    assert fields(text) == {
        "id": "a b=1",
        "usage": Call("Usage", [], {"n": 1}),
        "role": "user",
        "at": None,
        "more": {"a": [1, 2]},
    }


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "a", "a=", "=1", "a=1 2", "1 a=1", "a='1", "a=1)", "a=1,,", "a=>", "a b=1"),
        *("a=<A.B: 1", "a=<A.B: >", "a=<A.B: 1, 2>", "a=<A.B: 1,>", "a=<A.B: b=1>", "a=<A.B: 1)"),
        "a=f(b=1 c=2)",
    ],
)
def test_other_text_has_no_fields(text: str) -> None:
    with pytest.raises(ValueError, match="found"):
        fields(text)


@pytest.mark.parametrize("text", ["<A.B: 1>", "[<A.B: 1>]", "<a object at 0x1>", "<class 'a'>"])
def test_a_literal_has_no_objects(text: str) -> None:
    with pytest.raises(ValueError, match="found"):
        literal(text)


@pytest.mark.slow
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, min_size=1))
def test_fields_are_read_as_they_were_written(written: dict[str, Any]) -> None:
    assume(CONSTANTS.isdisjoint(written))
    text = " ".join(f"{key}={value!r}" for key, value in written.items())
    assume("set()" not in text)  # A call, like all others here.
    assert exact(dict(fields(text))) == exact(written)


def read_call(text: str) -> None:
    read_messages([{"role": "assistant", "content": text}], "assistant")


def read_object(text: str) -> None:
    parse_messages([text], "user")


READERS = {
    "a call": read_call,
    "a message of Haystack": read_object,
    "a message of AutoGen": read_object,
}


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("construct", INSIDE)
def test_any_construct_of_the_grammar_is_read_in_proportion_to_its_length(
    construct: str, around: str
) -> None:
    read = READERS.get(around, decode_value)
    assert in_proportion(lambda size: written(construct, around, size), read, SIZE)


@pytest.mark.parametrize(
    "construct", [name for name in INSIDE if "f-string" in name or "one hash" in name]
)
def test_what_is_slow_for_python_is_read_in_proportion_to_its_length(construct: str) -> None:
    size = MAX_LITERAL_CHARACTERS
    assert in_proportion(lambda size: written(construct, "a list", size), decode_value, size)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("construct", INSIDE)
def test_any_construct_of_the_longest_literal_is_read_in_proportion_to_its_length(
    construct: str, around: str
) -> None:
    read = READERS.get(around, decode_value)
    size = MAX_LITERAL_CHARACTERS
    assert in_proportion(lambda size: written(construct, around, size), read, size)
