"""Other notations of `criteria`: entries that name their metric, and custom metrics of ADK.

    {"metric": "tool_trajectory_f1", "criterion": {"threshold": 0.8, "matchMode": "name_only"}}

Both become the mapping that the rest of the package reads. Its places are those of the entries.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.config.criteria.syntax import normalized
from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Problems,
    show_value,
)
from pathgauge.collector.core.documents.places import moved
from pathgauge.scorers.types import Json

_NAMES = ("metric", "metric_name", "metricName")
_KEYS = (*_NAMES, "criterion", "threshold")


def by_name(document: Document, problems: Problems) -> Document:
    """The document with its criteria as a mapping by name. Wrong entries are left out and added to
    `problems`, so that they hide nothing else.
    """
    data = document.data
    if not isinstance(data, dict):
        return document
    entries = _entries(data.get("criteria"), ("criteria",))
    return document if entries is None else _with_criteria(document, data, entries, problems)


def of_adk(document: Document, problems: Problems) -> Document:
    """The document of an ADK `test_config.json`, or of entries alone, with its criteria as a
    mapping by name. Custom metrics name their function as `scorer`. What is wrong is left out and
    added to `problems`. Raises `ConfigError` if the custom metrics are no mapping.
    """
    entries = _entries(document.data, ())
    if entries is not None:
        return _with_criteria(document, {}, entries, problems)
    document = by_name(document, problems)
    data = document.data if isinstance(document.data, dict) else {}
    functions = _functions(document, data, problems)
    criteria = data.get("criteria")
    if not functions or not isinstance(criteria, dict):
        return document
    changed: dict[str, Json] = {}
    for name, written in criteria.items():
        function, given = functions.get(name, {}), normalized(written)
        if function is None:
            continue  # reported already
        if function and given is not None:
            changed[name] = {**function, **given, "scorer": function["scorer"]}
        else:
            changed[name] = written
    return moved(document, {**data, "criteria": changed}, lambda path: path)


def _entries(value: Json, path: KeyPath) -> list[tuple[KeyPath, Json]] | None:
    """The entries with their paths; `None` if the value is something else."""
    if value and isinstance(value, list):
        return [((*path, index), entry) for index, entry in enumerate(value)]
    if isinstance(value, dict) and isinstance(_name(value), str):
        return [(path, value)]
    return None


def _with_criteria(
    document: Document,
    data: Mapping[str, Json],
    entries: list[tuple[KeyPath, Json]],
    problems: Problems,
) -> Document:
    criteria: dict[str, Json] = {}
    places: dict[str | int, KeyPath] = {}
    for path, entry in entries:
        with problems:
            name, criterion = _criterion(document, path, entry)
            if name in criteria:
                text = f"found the metric {name!r} again, expected it once"
                raise ConfigError([document.problem(path, text)])
            criteria[name], places[name] = criterion, path

    def original(path: KeyPath) -> KeyPath:
        if path[:1] != ("criteria",) or len(path) < 2 or path[1] not in places:
            return path
        entry, rest = places[path[1]], path[2:]
        return (*entry, *(("criterion", *rest) if rest else ()))

    return moved(document, {**data, "criteria": criteria}, original)


def _criterion(document: Document, path: KeyPath, entry: Json) -> tuple[str, Json]:
    if not isinstance(entry, dict) or not isinstance(_name(entry), str):
        found = "an entry without a metric" if isinstance(entry, dict) else show_value(entry)
        text = f"found {found}, expected the keys metric and criterion"
        if not isinstance(entry, dict):
            text += ", or a mapping such as {latency: 30} in place of the list"
        raise ConfigError([document.problem(path, text)])
    unknown = [key for key in entry if key not in _KEYS]
    if unknown:
        text = f"found an unknown key, expected one of {', '.join(_KEYS)}"
        raise ConfigError([document.problem((*path, key), text, of_key=True) for key in unknown])
    criterion = entry.get("criterion")
    if entry.get("threshold") is not None and (given := normalized(criterion)) is not None:
        criterion = {"threshold": entry["threshold"], **given}
    return _name(entry), criterion


def _name(entry: Mapping[str, Json]) -> Json:
    return next((entry[key] for key in _NAMES if key in entry), None)


def _functions(
    document: Document, data: Mapping[str, Json], problems: Problems
) -> dict[str, dict[str, Json] | None]:
    """The functions of custom metrics, as `module:function`, and the ranges of their values; `None`
    for a metric that is wrong.
    """
    key = "customMetrics" if "customMetrics" in data else "custom_metrics"
    metrics = data.get(key)
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        text = f"found {show_value(metrics)}, expected a mapping"
        raise ConfigError([*problems.found, document.problem((key,), text)])
    found: dict[str, dict[str, Json] | None] = dict.fromkeys(metrics)
    for name, metric in metrics.items():
        with problems:
            function = _function(document, (key, name), metric)
            found[name] = {"scorer": function, **_range(metric)}
    return found


def _function(document: Document, path: KeyPath, metric: Json) -> str:
    written = metric if isinstance(metric, dict) else {}
    code = written.get("code_config", written.get("codeConfig"))
    name = code.get("name") if isinstance(code, dict) else None
    if not isinstance(name, str) or "." not in name:
        text = "found no function, expected code_config with a name such as my_package.my_function"
        raise ConfigError([document.problem(path, text)])
    return ":".join(name.rsplit(".", 1))


def _range(metric: Mapping[str, Json]) -> dict[str, Json]:
    """The options `low` and `high`, from the interval in ADK's `metric_info` if there is one."""
    found: Json = metric
    for key in ("metric_info", "metric_value_info", "interval"):
        written = normalized(found) if isinstance(found, dict) else None
        found = (written or {}).get(key)
    interval = (normalized(found) if isinstance(found, dict) else None) or {}
    bounds = {"low": interval.get("min_value"), "high": interval.get("max_value")}
    return {name: bound for name, bound in bounds.items() if bound is not None}
