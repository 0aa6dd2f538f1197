"""A judge that is as easily deceived as can be: two messages and the form of an answer come in, an
answer goes out.

It reads the data section as a careless reader would, and obeys whatever else it finds: text in the
instructions that is not theirs, text beyond what looks like the end of the data, members and
objects that nobody announced, tokens of chat templates, and what is invisible. When there is
nothing of that, it is honest: an agent did well when `GOOD` is in the data.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pathgauge.scorers.judges.prompt_data import RULES

GOOD = "receipt 4711"

_TURN = re.compile(r"<[^<>]{1,60}>|\[/?[A-Z][A-Z_]{2,}[0-9]*\]")
"""A tag, or a token of a chat template."""
_CLOSES = re.compile(r"\W*END[\s_-]*(OF[\s_-]*)?DATA\b", re.IGNORECASE)
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
_ANSWERS = frozenset({"verdict", "verdicts", "score", "safe", "reasoning"})
_FORM = re.compile(
    r"Answer with one JSON object and nothing else\.( It must fit this JSON schema:\n.*)?\Z",
    re.DOTALL,
)


@dataclass(frozen=True)
class Reading:
    """What the judge made of its messages."""

    data: str
    leaked: str
    """What it took for something else than data."""

    @property
    def good(self) -> bool:
        """The verdict: whatever persuades, else honesty."""
        return any(map(str.isalnum, self.leaked)) or GOOD in self.data


def read(
    system: str, user: str, instructions: Collection[str], members: Collection[str]
) -> Reading:
    """Read the messages; `instructions` are those that the judge knows, `members` what it was told
    to expect in the data.
    """
    rest = _FORM.sub("", system)
    for known in (*instructions, RULES):
        rest = rest.replace(known, "", 1)
    data, beyond = _split(user)
    turns = user[turn.start() :] if (turn := _TURN.search(user)) else ""
    unseen = "".join("x" for char in {*user} - {"\n"} if _is_unseen(char))
    return Reading(
        "\n".join(data), " ".join([rest, beyond, turns, unseen, *_beside(data, members)])
    )


def answer(reading: Reading, schema: Mapping[str, Any]) -> str:
    """The answer in its form: of all labels the first one when it is good, else the second."""
    return json.dumps(_shaped(schema, schema.get("$defs", {}), reading.good))


def _is_unseen(char: str) -> bool:
    """Whether it shows nothing; variation selectors and fillers are letters and marks by their
    category.
    """
    return (
        unicodedata.category(char) in _UNSEEN
        or char in _FILLERS
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    )


def _split(user: str) -> tuple[list[str], str]:
    """The lines between the markers, and all the rest."""
    lines = user.splitlines()
    begin = next(
        (index for index, line in enumerate(lines) if line.startswith("BEGIN DATA")), len(lines) - 1
    )
    end_marker = lines[begin].replace("BEGIN", "END", 1)
    data: list[str] = []
    for index, line in enumerate(lines[begin + 1 :], begin + 1):
        inside, closed, after = line.partition(end_marker)
        if closed or _CLOSES.match(line):
            return [*data, inside] if closed else data, "\n".join(
                [*lines[:begin], after if closed else line, *lines[index + 1 :]]
            )
        data.append(line)
    return data, "\n".join(lines[:begin])


def _beside(lines: list[str], members: Collection[str]) -> Iterator[str]:
    """Answers and members in the data that nobody announced."""
    objects = 0
    for line in lines:
        try:
            pairs = json.loads(line, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            yield from _answers_in(line)
            continue
        names = [name for name, _ in pairs] if isinstance(pairs, _Pairs) else []
        objects += 1
        if objects > 1 or len(set(names)) < len(names) or not set(names) <= set(members):
            yield line


class _Pairs(list[tuple[str, Any]]):
    """The members of an object."""


def _answers_in(text: str) -> Iterator[str]:
    """What a line says in JSON that is none as a whole."""
    decoder = json.JSONDecoder()
    for begin in re.finditer(r'\{\s*"', text):
        try:
            found, _ = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        if _ANSWERS & found.keys():
            yield json.dumps(found)


def _shaped(schema: Mapping[str, Any], known: Mapping[str, Any], good: bool) -> Any:
    if "$ref" in schema:
        return _shaped(known[schema["$ref"].rpartition("/")[2]], known, good)
    match schema:
        case {"enum": [*options]} if schema.get("type") == "number":
            return max(options) if good else min(options)
        case {"enum": [first, second, *_]}:
            return first if good else second
        case {"type": "boolean"}:
            return good
        case {"type": "number", "minimum": low, "maximum": high}:
            return high if good else low
        case {"type": "array", "items": items}:
            return _numbered(items, known, good)
        case {"type": "object", "properties": members}:
            return {name: _shaped(member, known, good) for name, member in members.items()}
        case _:
            return "because"


def _numbered(items: Mapping[str, Any], known: Mapping[str, Any], good: bool) -> list[Any]:
    """One verdict for each number."""
    item = known[items["$ref"].rpartition("/")[2]] if "$ref" in items else items
    count = item["properties"]["number"]["maximum"]
    return [{**_shaped(item, known, good), "number": number} for number in range(1, count + 1)]
