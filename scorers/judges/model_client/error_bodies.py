"""Reads the bodies of error responses: the text for people, and the parameter that was refused.

Servers with the OpenAI API agree on neither. The text may quote the request, so `shown` removes
credentials and judged content from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Set
from itertools import islice

from pathgauge.scorers.judges.model_client.accepted_parameters import Parameter
from pathgauge.scorers.types import Json

MAX_SHOWN_CHARS = 300
"""Maximum length of a text for people."""
_MAX_READ_CHARS = 4000
_MAX_READ_VALUES = 1000
"""A body of 1 MiB has hundreds of thousands, and other judges wait while it is read."""
_MAX_LEVELS = 8
_TEXT_KEYS = ("error", "errors", "message", "detail", "details", "msg", "metadata", "raw")
"""Members that contain the text, or contain a member that does."""

_REFUSAL = re.compile(
    r"un(?:supported|recogni[sz]ed|known|expected|available)|deprecated|extra_forbidden"
    r"|extra inputs|cannot find field|not (?:be )?(?:supported|permitted|allowed|recogni[sz]ed"
    r"|available|a valid)|(?:does not|doesn't|do not|don't|cannot|no longer) support"
    r"|only .{1,40} (?:is|are) (?:allowed|supported)|may only be",
    re.IGNORECASE,
)
_NAMES: dict[Parameter, re.Pattern[str]] = {
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b"),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
    "response_format": re.compile(
        r"\bresponse[_ ]format\b|\bjson_(?:schema|object)\b|structured outputs?", re.IGNORECASE
    ),
}
_CREDENTIAL = re.compile(
    r"\b(?:bearer|basic)\s+[^\s,;\"']+"
    r"|\b(?:sk|pk|rk|gsk|xox[a-z]|gh[opsu]|hf|nvapi)[-_][\w*.-]{6,}"
    r"|\b(?:AIza|AKIA|eyJ)[\w*.-]{8,}"
    r"|(?<=[?&])[\w-]*(?:key|token|secret|sig)[\w-]*=[^&\s\"']+",
    re.IGNORECASE,
)
_REDACTED = "[REDACTED]"
_KEY_RUN = 6
"""A part of the key with this many characters is redacted."""
_CONTENT_RUN = 12
"""A part of the judged content with this many characters is redacted."""


def json_of(text: str) -> Json:
    """The body as JSON, or else as text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def text_of(body: Json) -> str:
    """The text in an error body, in one line. Empty: it has none, or is a web page."""
    read = islice(_texts(body), _MAX_READ_VALUES)
    found = " ".join(" ".join(text for text in read if text).split())
    return "" if found.startswith("<") else found[:_MAX_READ_CHARS]


def refused_parameter(body: Json, sent: Collection[Parameter]) -> Parameter | None:
    """The parameter of the request, one of those `sent`, that the server does not support."""
    text = text_of(body)
    named = _param(body).partition(".")[0]
    if named == "response_format" and "response_format" in sent:
        return "response_format"  # any mistake in it: some servers do not support every schema
    if not _REFUSAL.search(text):
        return None
    for parameter in sent:
        if parameter == named:
            return parameter
    places = {parameter: _NAMES[parameter].search(text) for parameter in sent}
    found = {parameter: place.start() for parameter, place in places.items() if place}
    return min(found, key=found.__getitem__, default=None)


def shown(text: str, api_key: str, content: Json) -> str:
    """The text without credentials and without quotations of `content`, and not too long."""
    text = "".join(char for char in text if char.isprintable())
    quotable = "\n".join(" ".join(string.split()) for string in _strings(content))
    text = _without_runs(text, api_key, min(_KEY_RUN, len(api_key)))
    text = _without_runs(_CREDENTIAL.sub(_REDACTED, text), quotable, _CONTENT_RUN)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 1]}…"


def _texts(body: Json, level: int = 0) -> Iterator[str]:
    """The text of each value, in the order in which people read; empty for one that has none."""
    match body:
        case str():
            yield body
        case {"loc": list() as location, "msg": str() as text}:
            yield f"{'.'.join(map(str, location[:_MAX_LEVELS]))}: {text}"
        case list() if level < _MAX_LEVELS:
            yield ""
            for item in body:
                yield from _texts(item, level + 1)
        case dict() if level < _MAX_LEVELS:
            yield ""
            for key in _TEXT_KEYS:
                if key in body:
                    yield from _texts(body[key], level + 1)
        case _:
            yield ""


def _param(body: Json) -> str:
    """The member `param`, in which OpenAI names the parameter."""
    match body:
        case {"error": dict() as error}:
            return _param(error)
        case {"param": str() as name}:
            return name
        case _:
            return ""


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, item in value.items():
                yield str(name)
                yield from _strings(item)
        case list() | tuple():
            for item in value:
                yield from _strings(item)


def _without_runs(text: str, source: str, length: int) -> str:
    """The text with every run of at least `length` characters of `source` redacted."""
    if not source:
        return text
    folded, source = text.casefold(), source.casefold()
    if len(folded) != len(text):  # positions would differ
        return _without_runs(folded, source, length)
    runs = _runs(folded, length)
    found = _quoted({*runs}, folded, source, length)
    starts = (start for start, run in enumerate(runs) if run in found)
    kept, end = [], 0
    for begin, stop in _merged(starts, length):
        kept += [text[end:begin], _REDACTED]
        end = stop
    return "".join((*kept, text[end:]))


def _runs(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(len(text) - length + 1)]


def _quoted(runs: Set[str], text: str, source: str, length: int) -> Set[str]:
    """Those of the `runs`, which are all of `text`, that `source` contains.

    Searching for each run would read the whole source as often, and comparing all runs of the
    source would copy each of its characters a dozen times: seconds for a long trajectory. Each run
    contains a whole block of half its length, wherever blocks begin, so the surroundings of blocks
    that the text has are enough.
    """
    size = (length + 1) // 2
    blocks = {*_runs(text, size)}
    reach = length - size
    near = {
        source[max(0, start - reach) : start + length]
        for start in range(0, len(source), size)
        if source[start : start + size] in blocks
    }
    return {run for part in near for run in _runs(part, length) if run in runs}


def _merged(starts: Iterable[int], length: int) -> Iterator[tuple[int, int]]:
    """Ranges of `length` that overlap or touch, as one range each."""
    begin = stop = None
    for start in starts:
        if begin is None or stop is None:
            begin = start
        elif start > stop:
            yield begin, stop
            begin = start
        stop = start + length
    if begin is not None and stop is not None:
        yield begin, stop
