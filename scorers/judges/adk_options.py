"""Converts ADK's `judge_model_options` to the options of judges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pathgauge.scorers.types import Json

_OPTIONS: Mapping[str, str] = {"judge_model": "model", "num_samples": "samples"}
_CONFIG_OPTIONS: Mapping[str, str] = {
    "temperature": "temperature",
    "max_output_tokens": "max_tokens",
}
_TYPES: Mapping[str, tuple[Any, str]] = {
    "judge_model": (str, "a text"),
    "num_samples": (int, "a whole number"),
    "temperature": (int | float, "a number"),
    "max_output_tokens": (int, "a whole number"),
}


def judge_options(written: Mapping[str, Json]) -> dict[str, Json]:
    """The options of a judge. Raises `ValueError` for keys without a counterpart."""
    options: dict[str, Json] = {}
    for key, value in _snake_case(written).items():
        match key:
            case "judge_model" | "num_samples":
                options[_OPTIONS[key]] = _checked_type(key, value)
            case "judge_model_config":
                options |= _config_options(value)
            case "parallelism_limit":
                pass  # samples are asked sequentially, which is also ADK's default
            case _:
                expected = ", ".join([*_OPTIONS, "judge_model_config", "parallelism_limit"])
                raise ValueError(f"judge_model_options: found {key!r}, expected {expected}")
    return options


def _config_options(written: Json) -> dict[str, Json]:
    if not isinstance(written, Mapping | None):
        raise ValueError("judge_model_options: judge_model_config: expected a mapping")
    config = {key: value for key, value in _snake_case(written or {}).items() if value is not None}
    for key in config:
        if key not in _CONFIG_OPTIONS:
            raise ValueError(
                f"judge_model_options: judge_model_config: found {key!r}, expected"
                f" {', '.join(_CONFIG_OPTIONS)}"
            )
    return {_CONFIG_OPTIONS[key]: _checked_type(key, value) for key, value in config.items()}


def _checked_type(key: str, value: Json) -> Json:
    kind, expected = _TYPES[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"judge_model_options: {key}: found {value!r}, expected {expected}")
    return value


def _snake_case(written: Mapping[str, Json]) -> dict[str, Json]:
    return {
        re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", str(key)).lower(): value
        for key, value in written.items()
    }
