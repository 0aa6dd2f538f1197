"""Exports references as YAML in the native format; loading the text gives equal references.

The layout is meant for people: keys in the order of docs/references.md, a call on one line where
it fits, text of several lines as a block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import yaml

from pathgauge.collector.core.references.parallel_groups import steps
from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric

_WIDTH = 120
"""PyYAML wraps longer lines at a space where that keeps the meaning."""
_MAX_INLINE = 110
"""A call, or a value inside it, with more characters is written on several lines."""
_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Characters that YAML 1.1 treats as line breaks and changes unless they are escaped."""


def to_yaml(references: Iterable[Reference]) -> str:
    """YAML: a list of scenarios, or the single scenario. Raises `ValueError` for a matcher that has
    no notation.
    """
    scenarios = [scenario(reference) for reference in references]
    if len(scenarios) == 1:
        return _dump(scenarios[0])
    return "\n".join(_dump([one]) for one in scenarios) or "[]\n"


def scenario(reference: Reference) -> dict[str, Json]:
    """A reference in the native format, as JSON values. Raises `ValueError` for a matcher that has
    no notation.
    """
    turns = [_turn(turn) for turn in reference.turns]
    written: dict[str, Json] = {"scenario": reference.scenario_id}
    if len(turns) == 1 and turns[0]:
        written.update(turns[0])
    else:
        written["turns"] = turns
    if reference.criteria:
        written["criteria"] = dict(reference.criteria)
    if reference.expected_interval is not None:
        written["expected_interval"] = reference.expected_interval
    if reference.required:
        written["required"] = True
    return written


def _turn(turn: ReferenceTurn) -> dict[str, Json]:
    written = {
        "input": turn.user_input,
        "expected_tools": None if turn.tool_calls is None else _steps(turn.tool_calls),
        "expected_response": turn.response,
        "alternatives": [_compact(_steps(calls)) for calls in turn.alternatives] or None,
        "forbidden_tools": [_call(call) for call in turn.forbidden] or None,
        "response_contains": _compact(turn.response_contains) or None,
        "expected_agent": turn.expected_agent,
        "escalate": turn.escalate,
        "rubrics": [_rubric(rubric) for rubric in turn.rubrics] or None,
        "agents": {name: _turn(agent) for name, agent in turn.agents.items()} or None,
    }
    return {key: value for key, value in written.items() if value is not None}


def _rubric(rubric: TurnRubric) -> Json:
    written = {"text": rubric.text, "id": rubric.id, "description": rubric.description}
    if rubric.of != "response":
        written["of"] = rubric.of
    written = {key: value for key, value in written.items() if value}
    return rubric.text if len(written) == 1 else _compact(written)


def _steps(calls: Iterable[ExpectedCall]) -> list[Json]:
    return [_step(step) for step in steps(calls)]


def _step(step: tuple[ExpectedCall, ...]) -> Json:
    if len(step) == 1:
        return _call(step[0])
    return {"any_order": [_call(call) for call in step]}


def _call(call: ExpectedCall) -> Json:
    if call.arguments is None and not call.optional:
        return call.name
    written: dict[str, Json] = {"name": call.name}
    if call.arguments is not None:
        written["args"] = matchers.written(call.arguments)
    if call.optional:
        written["optional"] = True
    return _compact(written)


class _Mapping(dict[str, Json]):
    """A mapping that is written on one line where it fits."""


class _List(list[Json]):
    """A list that is written on one line where it fits."""


def _compact(value: Json) -> Json:
    if isinstance(value, Mapping):
        return _Mapping({key: _compact(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return _List(map(_compact, value))
    return value


class _Dumper(yaml.SafeDumper):
    """Indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


# PyYAML quotes text that YAML 1.1 would read as another type. YAML 1.2 has more number formats,
# such as 0o17 and 1e5.
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[.0-9][-+.\w]*\Z"), list("-+.0123456789")
)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = None
    if _BREAKS.search(text):
        style = '"'
    elif "\n" in text.strip("\n"):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_mapping(dumper: _Dumper, value: _Mapping) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=_fits(value))


def _represent_list(dumper: _Dumper, value: _List) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=_fits(value))


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Mapping, _represent_mapping)
_Dumper.add_representer(_List, _represent_list)


def _fits(value: Json) -> bool:
    return len(json.dumps(value, ensure_ascii=False).replace('"', "")) < _MAX_INLINE


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
