"""Writes references in the native format: references come in, YAML text goes out that loads as the
same references.

Keys stand in the order of docs/references.md, a call on one line where it fits, text of several
lines as a block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import yaml

from pathgauge.collector.core.references.parallel_groups import pieces
from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

_WIDTH = 120
"""Longer lines are broken at a blank where that changes nothing."""
_LONGEST_INLINE = 110
"""A longer call, or a longer value in it, stands on several lines."""
_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks in YAML 1.1, which reads them as others, except where they are escaped."""


def to_yaml(references: Iterable[Reference]) -> str:
    """A YAML list of scenarios, or the one scenario. Raises `ValueError` for a matcher that cannot
    be written.
    """
    scenarios = [scenario(reference) for reference in references]
    if len(scenarios) == 1:
        return _dump(scenarios[0])
    return "\n".join(_dump([one]) for one in scenarios) or "[]\n"


def scenario(reference: Reference) -> dict[str, Json]:
    """A reference as the native format says it, in JSON. Raises `ValueError` for a matcher that
    cannot be written.
    """
    turns = [_turn(turn) for turn in reference.turns]
    said: dict[str, Json] = {"scenario": reference.scenario_id}
    said |= turns[0] if len(turns) == 1 and turns[0] else {"turns": turns}
    said |= {"criteria": dict(reference.criteria)} if reference.criteria else {}
    return said | (
        {"expected_interval": reference.expected_interval}
        if reference.expected_interval is not None
        else {}
    )


def _turn(turn: ReferenceTurn) -> dict[str, Json]:
    said = {
        "input": turn.user_input,
        "expected_tools": None if turn.tool_calls is None else _steps(turn.tool_calls),
        "expected_response": turn.response,
        "alternatives": [_compact(_steps(calls)) for calls in turn.alternatives] or None,
        "forbidden_tools": [_call(call) for call in turn.forbidden] or None,
        "response_contains": _compact(turn.response_contains) or None,
        "expected_agent": turn.expected_agent,
        "escalate": turn.escalate,
        "agents": {name: _turn(agent) for name, agent in turn.agents.items()} or None,
    }
    return {key: value for key, value in said.items() if value is not None}


def _steps(calls: Iterable[ExpectedCall]) -> list[Json]:
    return [
        _call(piece[0]) if len(piece) == 1 else {"any_order": [_call(call) for call in piece]}
        for piece in pieces(calls)
    ]


def _call(call: ExpectedCall) -> Json:
    if call.arguments is None and not call.optional:
        return call.name
    said: dict[str, Json] = {"name": call.name}
    if call.arguments is not None:
        said["args"] = matchers.written(call.arguments)
    if call.optional:
        said["optional"] = True
    return _compact(said)


class _Mapping(dict[str, Json]):
    """A mapping that stands on one line where it fits."""


class _List(list[Json]):
    """A list that stands on one line where it fits."""


def _compact(value: Json) -> Json:
    if isinstance(value, Mapping):
        return _Mapping({key: _compact(item) for key, item in value.items()})
    return _List(map(_compact, value)) if isinstance(value, list | tuple) else value


class _Dumper(yaml.SafeDumper):
    """Indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


# PyYAML quotes the text that YAML 1.1 takes for something else; 1.2 knows more numbers, such as
# 0o17 and 1e5.
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[.0-9][-+.\w]*\Z"), list("-+.0123456789")
)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = '"' if _BREAKS.search(text) else "|" if "\n" in text.strip("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_mapping(dumper: _Dumper, value: _Mapping) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=_fits(value))


def _represent_list(dumper: _Dumper, value: _List) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=_fits(value))


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Mapping, _represent_mapping)
_Dumper.add_representer(_List, _represent_list)


def _fits(value: Json) -> bool:
    return len(json.dumps(value, ensure_ascii=False).replace('"', "")) < _LONGEST_INLINE


def _dump(value: Json) -> str:
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        default_flow_style=False,
    )
    return text
