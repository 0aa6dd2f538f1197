"""Text by the grammar of Python, damaged or not: whatever it is, it is read and redacted in
proportion to its length. `make fuzz` tries 4,000 texts of the greatest length that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest

from pathgauge.collector.core.invocations.dialects.openai_agents import read_messages
from pathgauge.collector.core.invocations.messages.literals import MAX_LITERAL_CHARACTERS
from pathgauge.collector.core.invocations.messages.values import decode
from pathgauge.collector.core.redaction import KeyRule, Redactor, Rules
from pathgauge.collector.testing import span
from support.dialects import INSTALLED
from support.fuzzing import EXECUTIONS, FEWEST, SEED
from support.proportion import in_proportion

BATCHES = 4
SHARE = 0.02
MAX_DEPTH = 4
MAX_PIECE = 400
MAX_AROUND = 100
"""Characters before and after the pieces."""

GRAMMAR: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "value": (
        *(("number",), ("string",), ("name",), ("field string",)),
        *(("[", "items", "]"), ("(", "items", ")"), ("{", "items", "}"), ("{", "pairs", "}")),
        *(("name", "(", "items", ")"), ("name", "(", "name", "=", "value", ")")),
        *(("value", "operator", "value"), ("-", "value"), ("not ", "value"), ("*", "value")),
        *(("value", "[", "value", "]"), ("value", "[", "value", ":", "]"), ("value", ".", "name")),
        *(("value", " if ", "value", " else ", "value"), ("lambda ", "name", ":", "value")),
        *(("[", "value", " for ", "name", " in ", "value", "]"), ("(", "name", ":=", "value", ")")),
        *(("<", "name", ".", "name", ": ", "value", ">"), ("<", "name", " object at 0x1>")),
    ),
    "items": ((), ("value",), ("value", ",", "items"), ("value", ",\n ", "items")),
    "pairs": (("value", ": ", "value"), ("string", ":", "value", ",", "pairs"), ("**", "value")),
    "operator": (("+",), ("*",), ("**",), (" and ",), (" in ",), ("<",), ("==",), (" is not ",)),
    "number": (("1",), ("-1.5e3",), ("0x1f",), ("1_0",), ("1j",), ("9" * 300,), (str(2**61 - 1),)),
    "name": (("a",), ("None",), ("True",), ("set",), ("nan",), ("datetime.datetime",), ("...",)),
    "string": (
        *(("'", "text", "'"), ('"', "text", '"'), ("b'", "text", "'"), ("r'", "text", "'")),
        *(("'''", "text", "'''"), ("string", " ", "string"), ("'password'",)),
    ),
    "field string": (
        *(("f'", "fields", "'"), ("f'''", "fields", "'''"), ("rf'", "fields", "'")),
        ("f'", "fields", "' '", "text", "'"),
    ),
    "fields": ((), ("text", "fields"), ("{", "value", "}", "fields"), ("{", "value", "!r:>{a}}")),
    "text": ((), ("a@b.co",), ("\\n",), ("\\x41",), ("\\N{BULLET}",), ("\\",), ("é",), ("{{}}",)),
}
"""What a symbol may consist of. Everything that is no symbol is written as it is."""


def expanded(symbol: str, random: Random, depth: int = 0) -> str:
    """A text for the symbol."""
    if symbol not in GRAMMAR:
        return symbol
    options = GRAMMAR[symbol]
    if depth >= MAX_DEPTH:
        options = options[:1]
    return "".join(expanded(part, random, depth + 1) for part in random.choice(options))


def damaged(text: str, random: Random) -> str:
    """The text without a part of it, or with something else in between."""
    start = random.randrange(len(text) + 1)
    match random.randrange(4):
        case 0:
            return text[:start] + text[start + 1 :]
        case 1:
            return text[:start] + random.choice("'\"\\[](){}:,=\n#") + text[start:]
        case _:
            return text


CONTEXTS = (
    *(
        ("[", "value", "]"),
        ("{'password': [", "value", "]}"),
        ("{", "value", "}"),
        ('"', "text", '"'),
    ),
    *(("[f'", "fields", "']"), ("{'password': f'", "fields", "'}"), ('[f"""', "fields", '"""]')),
    *(("['", "text", "']"), ("{b'", "text", "': 1}"), ("{", "pairs", "}"), ("[f(", "items", ")]")),
)
"""What is written before and after many expansions of a symbol."""


def hostile(random: Random) -> Callable[[int], str]:
    """A function that writes the same kind of text in any length: the number of pieces is even,
    because an odd number of backslashes would escape what comes after them.
    """
    before, symbol, after = random.choice(CONTEXTS)
    piece = damaged("".join(expanded(symbol, random) for _ in range(3)), random)[:MAX_PIECE]
    piece += random.choice(("", "", ",", ", ", " ", "'a': ", "("))
    return lambda size: before + piece * (size // max(1, len(piece)) // 2 * 2) + after


REDACTOR = Redactor(Rules((KeyRule("*.password", "drop"),)), {}, b"salt", INSTALLED)


def redact(text: str) -> None:
    REDACTOR.spans([span("a", "chat", {"gen_ai.tool.call.arguments": text})])


def read_call(text: str) -> None:
    content = f"ResponseFunctionToolCall(name='a', arguments={text})"
    read_messages([{"role": "assistant", "content": content}], "assistant")


@pytest.mark.parametrize("batch", range(BATCHES))
def test_text_by_the_grammar_of_python_takes_time_in_proportion_to_its_length(batch: int) -> None:
    for number in range(max(round(EXECUTIONS * SHARE) // BATCHES, FEWEST)):
        seed = f"{SEED}/literals/{batch}/{number}"
        random = Random(seed)
        write, read = hostile(random), random.choice((decode, read_call, redact))
        if not in_proportion(write, read, MAX_LITERAL_CHARACTERS - MAX_AROUND):
            pytest.fail(
                f"FUZZ_SEED={SEED}: {seed}: {read.__name__} of {write(100)!r}", pytrace=False
            )
