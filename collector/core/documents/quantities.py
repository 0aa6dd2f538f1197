"""Durations, sizes, counts, endpoints and other values in configuration files.

The annotated types are for pydantic models. An invalid value raises `ValueError` with a description
of what was expected.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator

from pathgauge.scorers.types import Json

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}

_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|[smhd])", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([kKMG]i?B|B)", re.ASCII)
_MAX_EXCLUSIVE = 10**18
"""Counts and sizes must be smaller. No real one is larger, and floats can represent them."""
_ENDPOINT = re.compile(
    r"(?P<host>[^\s\x00-\x1f:/\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})", re.ASCII
)
_CREDENTIALS = re.compile(r"(?:[a-z]+://)?[^/?#]*@", re.ASCII)


class Endpoint(NamedTuple):
    """The address of a server. Port 0 lets the system choose a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_duration(value: Json) -> float:
    """Seconds, from `6s`, `1h30m`, `500ms` or a number."""
    expected = "a duration such as 6s, 10m or 1h30m"
    if isinstance(value, str) and re.fullmatch(f"(?:{_DURATION.pattern})+", value, re.ASCII):
        return sum(float(amount) * _SECONDS[unit] for amount, unit in _DURATION.findall(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= sys.float_info.max:
        raise ValueError(expected)
    return float(value)


def parse_size(value: Json) -> int:
    """Bytes, at least one, from `16MiB`, `64 KiB` or a whole number."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match and match[2] in _BYTES:
        value = int(float(match[1]) * _BYTES[match[2]])
    return _positive(value, "a size such as 16MiB")


def parse_count(value: Json) -> int:
    """A whole number from 1. Digits in quotes are accepted, for environment variables."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value, re.ASCII):
        value = int(value)
    return _positive(value, "a whole number from 1")


def parse_number(value: Json) -> Json:
    """The value itself. Refuses `true` and `false`, which Python treats as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("a number")
    return value


def parse_switch(value: Json) -> bool:
    """`true` or `false`, also in quotes, for environment variables. Other notations, such as `yes`
    or 1, are refused.
    """
    if value in ("true", "false"):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def parse_endpoint(value: Json) -> Endpoint:
    """Host and port, from `127.0.0.1:4317`, `localhost:4317` or `[::1]:4317`."""
    if isinstance(value, Endpoint):
        return value
    expected = "host:port, such as 127.0.0.1:4317 or 0.0.0.0:4317"
    match = _ENDPOINT.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match["port"]) > 65535:
        raise ValueError(expected)
    try:
        match["host"].encode("idna")
    except UnicodeError:  # the socket would raise it later
        raise ValueError(expected) from None
    return Endpoint(match["host"].strip("[]"), int(match["port"]))


def refuse_credentials(address: Json) -> None:
    """Refuse an address with a user or a password, without quoting it."""
    if isinstance(address, str) and _CREDENTIALS.match(address):
        raise ValueError("found an address with credentials, expected it without")


def parse_path(value: str) -> str:
    """The value itself, if it can be the name of a file."""
    if "\0" in value:
        raise ValueError("a path without a null character")
    return value


def _positive(value: Json, expected: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(expected)
    if value >= _MAX_EXCLUSIVE:
        raise ValueError(f"{expected}, below 10^18")
    return value


def at_least(parse: Callable[[Json], float], least: str) -> AfterValidator:
    """The lower bound of a `Duration` or `Size`, named in the unit people write."""
    bound = parse(least)

    def check(value: float) -> float:
        if value < bound:
            raise ValueError(f"at least {least}")
        return value

    return AfterValidator(check)


Duration = Annotated[float, BeforeValidator(parse_duration)]
"""Seconds."""
Size = Annotated[int, BeforeValidator(parse_size)]
"""Bytes."""
Count = Annotated[int, BeforeValidator(parse_count)]
FileName = Annotated[str, AfterValidator(parse_path)]
"""The name of a file or folder."""
Switch = Annotated[bool, BeforeValidator(parse_switch)]
