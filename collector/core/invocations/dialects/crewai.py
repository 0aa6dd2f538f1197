"""CrewAI, as instrumented by OpenInference and by OpenLLMetry: the kickoff of a crew, with the runs
of its agents below it.

Both are recognised by their scopes. CrewAI embeds what a crew is asked, the description of its
first task, in a prompt of its own. The span of the crew has that description as the program wrote
it, with placeholders for the inputs of the crew. OpenInference has the inputs beside it;
OpenLLMetry does not, but the span of the task has the final text.

With OpenLLMetry, crews and tasks have the operation of an agent. Tool calls have no spans, and the
messages of agents that reason in text do not show them either. The token counts of a crew cover the
whole lifetime of its model objects, so they are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    members,
    value_below,
)
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.crewai"
OPENINFERENCE_SCOPE = "openinference.instrumentation.crewai"

_TASKS = ("crew_tasks", "crewai.crew.tasks")
_INPUTS = "crew_inputs"
_OUTPUT = "output.value"
_TASK_ID = "task_id"

_MAX_TEXT = 100_000
"""A description with its inputs that is longer is not read: a placeholder may occur many times."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def matches(span: Span) -> bool:
    """Spans of the scope of OpenLLMetry."""
    return span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """Only the crew, which states no kind; other spans follow the conventions."""
    if span.name == "crewai.workflow":
        return "workflow"
    return None


def asked_of_crew(span: Span) -> str | None:
    """The description of the first task with the inputs of the crew; `None` if one is missing."""
    tasks = next((span.attributes[key] for key in _TASKS if key in span.attributes), None)
    description = value_below(decoded(tasks), (0, "description"))
    if not isinstance(description, str):
        return None
    return _with_inputs(description, members(span.attributes.get(_INPUTS)))


def _with_inputs(description: str, inputs: Mapping[str, Any]) -> str | None:
    parts = _PLACEHOLDER.split(description)
    names = parts[1::2]
    if not all(name in inputs for name in names):
        return None
    texts = {name: str(inputs[name]) for name in set(names)}
    if len(description) + sum(len(texts[name]) for name in names) > _MAX_TEXT:
        return None
    parts[1::2] = [texts[name] for name in names]
    return "".join(parts)


def asked_of_agent(span: Span) -> Any:
    """The description of the task that an agent of a crew has done."""
    if _TASK_ID not in span.attributes:
        return None
    return members(span.attributes.get(_OUTPUT)).get("description")


CREWAI = Dialect(
    name="openllmetry",
    before=("openllmetry",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    entry_names=("crewai.workflow",),
    shows_tools=False,
    fields=Fields(
        workflow_name=("crewai.crew.name",),
        agent_name=("crewai.agent.role",),
        agent_input=(Derived(asked_of_crew),),
        step_input=("crewai.task.description",),
        final_response=("crewai.crew.result",),
    ),
)

OPENINFERENCE_CREWAI = Dialect(
    name="openinference",
    before=("openinference",),
    scopes=(OPENINFERENCE_SCOPE,),
    matches=lambda span: span.scope.name == OPENINFERENCE_SCOPE,
    kind=lambda _: None,
    fields=Fields(
        # Before `input.value`, which holds the inputs of a crew. One may be called "messages".
        input_messages=(Derived(asked_of_crew),),
        agent_input=(Derived(asked_of_agent),),
    ),
)
"""What a crew was asked; the rest is as in all instrumentations of OpenInference."""
