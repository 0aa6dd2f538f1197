"""Views of an invocation: what one of its agents did itself, or with all agents below it, as an invocation of its own.

So the scorers that judge whole invocations judge a coordinator and each of its sub-agents just as well.
"""

from __future__ import annotations

from dataclasses import replace

from scorers.types import AgentRun, Invocation, total_tokens


def own_view(invocation: Invocation, run: AgentRun | None = None) -> Invocation:
    """What the agent of `run` did itself, without its sub-agents; `None` is the main agent."""
    if run is None:
        below = {other.span_id for other in invocation.sub_agents}
        calls = tuple(call for call in invocation.tool_calls if call.run not in below)
        models = tuple(call for call in invocation.model_calls if call.run not in below)
        input_tokens, output_tokens = total_tokens(models) if invocation.sub_agents else (invocation.input_tokens, invocation.output_tokens)
        return replace(
            invocation, tool_calls=calls, model_calls=models, sub_agents=(), input_tokens=input_tokens, output_tokens=output_tokens
        )
    return _view(invocation, run, {run.span_id})


def subtree_view(invocation: Invocation, run: AgentRun) -> Invocation:
    """What the agent of `run` and all agents below it did."""
    runs = {run.span_id}
    for other in invocation.sub_agents:  # in start order, so a parent comes before its children
        if other.parent_run in runs:
            runs.add(other.span_id)
    return _view(invocation, run, runs)


def _view(invocation: Invocation, run: AgentRun, runs: set[str]) -> Invocation:
    models = tuple(call for call in invocation.model_calls if call.run in runs)
    input_tokens, output_tokens = total_tokens(models)
    return replace(
        invocation,
        span_id=run.span_id,
        agent=run.agent,
        user_input=run.user_input,
        tool_calls=tuple(call for call in invocation.tool_calls if call.run in runs),
        sub_agents=tuple(other for other in invocation.sub_agents if other.span_id in runs and other.span_id != run.span_id),
        model_calls=models,
        final_response=run.final_response,
        error=run.error is not None,
        error_type=run.error_type,
        model=models[-1].model if models else None,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        start_ns=run.start_ns,
        end_ns=run.end_ns,
    )
