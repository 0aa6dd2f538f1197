"""Scores whether named skills were used: skills of a skill tool, tools, or sub-agents.

Skills are loaded by a tool with the name as an argument (`Skill`, `load_skill`), or by reading the
file `<name>/SKILL.md`. Names are compared by their words: `PDF Forms` is `pdf-forms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_choice, check_texts
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import as_object, failed
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.tool_use.delegations import called_agent, delegates, words
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score, ToolCall

Which = Literal["all", "any"]
"""Which of the skills must be used."""

_SKILL_TOOL = re.compile("(?:(?:use|load|activate|invoke|run|read|get)_)?skills?")
_SKILL_ARGUMENTS = ("skill", "skill_name", "name", "command", "skill_id")
_READ_VERBS = {"read", "view", "open", "load", "cat"}
_PATH_ARGUMENTS = ("path", "file_path", "filename", "file")
_SKILL_FILE = re.compile(r"([^/\\]{1,200})[/\\]skill\.md", re.IGNORECASE)


@dataclass(frozen=True)
class SkillInvoked(Share):
    """1 if the skills, tools or sub-agents were used without an error, else 0."""

    name: ClassVar[str] = "skill_invoked"
    binary: ClassVar[bool] = True

    skills: tuple[str, ...] = ()
    """Names of skills, tools or sub-agents."""
    which: Which = "all"
    """`all`: each of them must be used. `any`: one of them."""

    def __post_init__(self) -> None:
        check_choice("which", self.which, get_args(Which))
        check_texts("skills", self.skills)
        for skill in self.skills:
            if not words(skill):
                raise ValueError(f"skills: found {skill!r}, expected the name of a skill")

    @property
    def missing_option(self) -> str:
        """What must be configured before there can be a score."""
        return "" if self.skills else "skills"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if not self.skills:
            return Score.not_evaluated("no_reference", "no skill is given")
        used = dict.fromkeys(words(name) for name in _used(actual))
        missing = [skill for skill in self.skills if words(skill) not in used]
        enough = not missing if self.which == "all" else len(missing) < len(self.skills)
        if not enough and (unknown := tools_unknown(actual)):
            return unknown
        if not enough and any(map(_hides_skill, actual.tool_calls)):
            return Score.not_evaluated(
                "args_not_recorded", "arguments not recorded, so the loaded skill is not known"
            )
        found = [skill for skill in self.skills if skill not in missing]
        parts = [f"used {listed(found)}"] if found else []
        if missing:
            parts.append(f"did not use {listed(missing)}")
        details = {"used": found, "missing": missing}
        return Score(float(enough), None, "; ".join(parts), details)


def _used(actual: Invocation) -> Iterator[str]:
    """Everything that was used by name."""
    for call in actual.tool_calls:
        if not failed(call):
            yield from _names(call)
    yield from (run.agent for run in actual.sub_agents if run.agent and run.error is None)


def _names(call: ToolCall) -> Iterator[str]:
    yield call.name
    if delegates(call) and (agent := called_agent(call)):
        yield agent
    tool, arguments = words(call.name), as_object(call.arguments)
    if _SKILL_TOOL.fullmatch(tool):
        for key in _SKILL_ARGUMENTS:
            if isinstance(name := arguments.get(key), str):
                yield name
                yield name.rpartition(":")[2]  # a skill of a plug-in: `documents:pdf`
    if _reads_files(tool):
        paths = (arguments.get(key) for key in _PATH_ARGUMENTS)
        files = (_SKILL_FILE.search(path[-300:]) for path in paths if isinstance(path, str))
        yield from (file[1] for file in files if file)


def _hides_skill(call: ToolCall) -> bool:
    """Whether the call may have loaded any skill."""
    tool = words(call.name)
    may_load = _SKILL_TOOL.fullmatch(tool) or _reads_files(tool) or delegates(call)
    return call.arguments is None and not failed(call) and bool(may_load)


def _reads_files(tool: str) -> bool:
    return not _READ_VERBS.isdisjoint(tool.split("_"))
