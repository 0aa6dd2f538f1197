"""Skills: every way to use one, and when it is not known whether one was used."""

from typing import Any

import pytest

from pathgauge import AgentRun, Score, SkillInvoked, ToolCall, check_scorer, invocation, tool_call

PDF = ("pdf-forms",)


def score(skills: tuple[str, ...], *calls: ToolCall, which: Any = "all", **others: Any) -> Score:
    return SkillInvoked(skills, which).score(invocation(*calls, **others), None)


@pytest.mark.parametrize(
    "call",
    [
        tool_call("pdf-forms"),
        tool_call("PDF Forms"),
        tool_call("Skill", skill="pdf-forms"),
        tool_call("Skill", command="documents:pdf-forms"),
        tool_call("skills", skill_name="pdf_forms"),
        tool_call("load_skill", name="pdf-forms"),
        ToolCall("load_skill", '{"name": "pdf-forms"}'),
        tool_call("read_file", path="/skills/pdf-forms/SKILL.md"),
        tool_call("view", path="C:\\skills\\pdf-forms\\skill.md"),
        tool_call("transfer_to_pdf_forms"),
        ToolCall("task", {"subagent_type": "pdf-forms"}, kind="agent"),
        ToolCall("load_skill", {"name": "pdf-forms"}, result="# PDF forms"),
    ],
)
def test_a_skill_is_used_by_its_tool_by_its_file_or_as_an_agent(call: ToolCall) -> None:
    assert score(PDF, call).value == 1.0


@pytest.mark.parametrize(
    "call",
    [
        tool_call("pdf"),
        tool_call("search", skill="pdf-forms"),
        tool_call("Skill", skill="pdf-forms-2"),
        tool_call("Skill", skill=["pdf-forms"]),
        tool_call("write_file", path="/skills/pdf-forms/SKILL.md"),
        tool_call("read_file", path="/skills/pdf-forms/README.md"),
        tool_call("read_file", path="SKILL.md"),
        tool_call("bash", command="cat /skills/pdf-forms/SKILL.md"),
        ToolCall("load_skill", {"name": "pdf-forms"}, error="unknown skill"),
        ToolCall("load_skill", {"name": "pdf-forms"}, result={"error": "unknown skill"}),
        ToolCall("pdf-forms", {}, error="boom"),
    ],
)
def test_anything_else_does_not_use_it(call: ToolCall) -> None:
    assert score(PDF, call).value == 0.0


def test_of_any_skills_one_must_be_used() -> None:
    assert score(("pdf", "excel"), tool_call("word"), which="any").value == 0.0


def test_a_run_of_a_sub_agent_uses_it_unless_it_failed() -> None:
    assert score(PDF, sub_agents=(AgentRun("2", "pdf_forms"),)).value == 1.0
    assert score(PDF, sub_agents=(AgentRun("2", "pdf_forms", error="boom"),)).value == 0.0
    assert score(PDF, sub_agents=(AgentRun("2", None),)).value == 0.0


@pytest.mark.parametrize(("which", "value"), [("all", 0.0), ("any", 1.0)])
def test_all_skills_must_be_used_or_any(which: str, value: float) -> None:
    assert score(("pdf", "excel"), tool_call("pdf"), which=which) == Score(
        value, None, "used pdf; did not use excel", {"used": ["pdf"], "missing": ["excel"]}
    )


@pytest.mark.parametrize(
    ("call", "others", "reason"),
    [
        (ToolCall("load_skill"), {}, "args_not_recorded"),
        (ToolCall("read_file"), {}, "args_not_recorded"),
        (ToolCall("transfer_to_agent"), {}, "args_not_recorded"),
        (ToolCall("search"), {}, None),
        (ToolCall("load_skill", error="boom"), {}, None),
        (tool_call("search"), {"flags": frozenset({"no_tool_spans"})}, "tools_not_recorded"),
    ],
)
def test_a_missing_skill_is_certain_only_if_everything_is_recorded(
    call: ToolCall, others: dict[str, Any], reason: str | None
) -> None:
    assert score(PDF, call, **others).reason == reason
    assert score(PDF, call, tool_call("pdf_forms"), **others).value == 1.0


def test_without_skills_there_is_no_value() -> None:
    assert score(()).reason == "no_reference"


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="skills: found '-', expected the name of a skill"):
        SkillInvoked(("-",))
    with pytest.raises(ValueError, match="which: found 'none', expected one of all, any"):
        SkillInvoked(PDF, "none")  # type: ignore[arg-type]


def test_it_keeps_the_contract() -> None:
    check_scorer(SkillInvoked(("search", "book"), "any"))
