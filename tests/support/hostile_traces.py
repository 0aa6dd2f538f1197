"""Traces of every shape, with any number of spans, messages or calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.testing import log, span

Node = Callable[[str, "str | None", int], Span]
"""Makes a span from its id, its parent and its number."""

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
CALL = {"name": "t", "arguments": "{}"}
ASKING = {"role": "assistant", "tool_calls": [CALL]}
ANSWERING = {"role": "tool", "content": "1"}


def operation(name: str, **attributes: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": name, **attributes}


def agent(id: str, parent: str | None = None, name: str | None = "a", **more: Any) -> Span:
    named = {"gen_ai.agent.name": name} if name else {}
    return span(
        id, f"invoke_agent {name or ''}", operation("invoke_agent", **named, **more), parent=parent
    )


def model(id: str, parent: str | None = "root", **more: Any) -> Span:
    return span(id, "chat m", operation("chat", **more), parent=parent)


def tool(id: str, parent: str | None = "root", name: str = "t", **more: Any) -> Span:
    attributes = operation("execute_tool", **{"gen_ai.tool.name": name}, **more)
    return span(id, f"execute_tool {name}", attributes, parent=parent, start=0.1)


def openinference(kind: str) -> Node:
    def make(id: str, parent: str | None, number: int) -> Span:
        attributes = {
            "openinference.span.kind": kind,
            "metadata": json.dumps({"langgraph_node": f"n{number}", "lc_agent_name": "x"}),
        }
        scope = "openinference.instrumentation.langchain"
        return span(id, f"n{number}", attributes, parent=parent, scope=scope)

    return make


NODES: Mapping[str, Node] = {
    "plain spans": lambda id, parent, _: span(id, "GET", parent=parent),
    "agents": lambda id, parent, _: agent(id, parent),
    "different agents": lambda id, parent, number: agent(id, parent, f"a{number}"),
    "agents without a name": lambda id, parent, _: agent(id, parent, None),
    "workflows": lambda id, parent, number: span(
        id, f"invoke_workflow {number}", operation("invoke_workflow"), parent=parent
    ),
    "model calls": lambda id, parent, _: model(id, parent, **{OUTPUT: json.dumps([ASKING])}),
    "tools": lambda id, parent, _: tool(id, parent),
    "tools with ids after tools without": lambda id, parent, number: tool(
        id, parent, **({"gen_ai.tool.call.id": "x"} if number % 256 > 100 else {})
    ),
    "agents and tools": lambda id, parent, number: (
        agent(id, parent) if number % 2 else tool(id, parent, f"t{number}")
    ),
    "agents, tools and model calls": lambda id, parent, number: (
        agent(id, parent, f"a{number}"),
        tool(id, parent, f"t{number}"),
        model(id, parent),
    )[number % 3],
    "chains": openinference("CHAIN"),
    "handoffs": lambda id, parent, number: span(
        id, f"handoff to {number}", {"openinference.span.kind": "TOOL"}, parent=parent
    ),
    "messages of teams": lambda id, parent, number: span(
        id,
        "autogen process x" if number % 10 else "autogen send x",
        {"messaging.destination": "a.(x)-T"},
        parent=parent,
        scope="autogen x",
    ),
    "agents beside their runs": lambda id, parent, _: span(
        id,
        "x.agent",
        {"traceloop.span.kind": "agent", "traceloop.entity.name": "x"},
        parent=parent,
        scope="opentelemetry.instrumentation.openai_agents",
    ),
    "turns": lambda id, parent, number: span(
        id, "haystack.component.run", {"haystack.component.type": "ToolInvoker"}, parent=parent
    ),
}


def chain(node: Node, size: int, parent: str | None = None) -> list[Span]:
    ids = [f"c{number}" for number in range(size)]
    parents = [parent, *ids]
    return [node(id, above, n) for n, (id, above) in enumerate(zip(ids, parents, strict=False))]


def star(node: Node, size: int, parent: str | None = "root") -> list[Span]:
    return [node(f"s{number}", parent, number) for number in range(size)]


TREES: Mapping[str, Callable[[Node, int], list[Span]]] = {
    "in a chain": chain,
    "in a chain below an agent": lambda node, size: [agent("root"), *chain(node, size, "root")],
    "beside each other": lambda node, size: [agent("root"), *star(node, size)],
    "without a parent": lambda node, size: star(node, size, None),
    "below one that never arrived": lambda node, size: star(node, size, "gone"),
    "each below one that never arrived": lambda node, size: [
        node(f"s{number}", f"gone{number}", number) for number in range(size)
    ],
    "below a chain": lambda node, size: [
        *chain(NODES["plain spans"], size // 2),
        *star(node, size // 2, f"c{size // 2 - 1}"),
    ],
    "below a chain of workflows": lambda node, size: [
        *chain(NODES["workflows"], size // 2),
        *star(node, size // 2, f"c{size // 2 - 1}"),
    ],
    "in a cycle": lambda node, size: [
        node(f"c{number}", f"c{(number + 1) % size}", number) for number in range(size)
    ],
    "in many cycles": lambda node, size: [
        node(f"c{number}", f"c{number ^ 1}", number) for number in range(size // 2 * 2)
    ],
    "each with a tool": lambda node, size: [
        agent("root"),
        *star(node, size // 2),
        *(tool(f"t{number}", f"s{number}") for number in range(size // 2)),
    ],
    "beside model calls": lambda node, size: [
        agent("root"),
        *star(NODES["model calls"], size // 2),
        *(node(f"o{number}", "root", number) for number in range(size // 2)),
    ],
}


class Content(NamedTuple):
    """What the spans below an agent hold."""

    spans: list[Span]
    logs: Sequence[LogRecord] = ()


def messages(item: Any, key: str = OUTPUT) -> Callable[[int], Content]:
    """A model call with a list of messages; a function makes each from its number."""

    def make(size: int) -> Content:
        listed = [item(number) if callable(item) else item for number in range(size)]
        return Content([model("m", **{key: json.dumps(listed)})])

    return make


def in_message(key: str, item: Any) -> Callable[[int], Content]:
    """A model call with one message, whose `key` has many items."""

    def make(size: int) -> Content:
        written = json.dumps([{"role": "assistant", key: [item] * size}])
        return Content([model("m", **{OUTPUT: written})])

    return make


def asked_and(node: Callable[[int], Span], asked: Any = CALL) -> Callable[[int], Content]:
    """A model call that asks for many tools, and as many spans."""

    def make(size: int) -> Content:
        message = {"role": "assistant", "tool_calls": [asked] * size}
        nodes = [node(number) for number in range(size)]
        return Content([model("m", **{OUTPUT: json.dumps([message])}), *nodes])

    return make


def answered(results: Callable[[int], list[Any]]) -> Callable[[int], Content]:
    """A prompt with calls and their results."""

    def make(size: int) -> Content:
        asking = {"role": "assistant", "tool_calls": [CALL] * size}
        return Content([model("m", **{INPUT: json.dumps([asking, *results(size)])})])

    return make


CONTENT: Mapping[str, Callable[[int], Content]] = {
    "empty messages": messages({"role": "assistant"}),
    "messages that ask for a tool": messages(ASKING),
    "messages that ask for a tool by id": messages(
        lambda number: {"role": "assistant", "tool_calls": [{**CALL, "id": str(number)}]}
    ),
    "results": messages(ANSWERING, INPUT),
    "calls in one message": in_message("tool_calls", CALL),
    "calls and as many results": answered(lambda size: [ANSWERING] * size),
    "calls and as many results in one message": answered(
        lambda size: [
            {"role": "tool", "parts": [{"type": "tool_call_response", "response": 1}] * size}
        ]
    ),
    "texts in one message": in_message("parts", {"type": "text", "content": "x"}),
    "messages in text": messages(json.dumps(json.dumps(ASKING))),
    "nested lists": messages([[[]]]),
    "pairs": messages(["user", "x"], INPUT),
    "numbers": messages(1),
    "messages of LangChain": messages(
        {"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "x", "tool_calls": [CALL]}}
    ),
    "items of responses": messages({"type": "function_call", **CALL}),
    "messages in objects": lambda size: Content(
        [
            model(
                "m",
                **{
                    INPUT: reduce(
                        lambda inner, _: json.dumps({"messages": inner}),
                        range(5),
                        json.dumps([ANSWERING] * size),
                    )
                },
            )
        ]
    ),
    "definitions of tools": lambda size: Content(
        [
            agent(
                f"d{number}",
                "root",
                f"a{number}",
                **{
                    "gen_ai.tool.definitions": json.dumps(
                        [
                            {"name": f"t{number}_{n}", "parameters": {"type": "object"}}
                            for n in range(10)
                        ]
                    )
                },
            )
            for number in range(size // 10)
        ]
    ),
    "tools with schemas": lambda size: Content(
        [
            span(
                f"t{n}",
                f"t{n}",
                {
                    "openinference.span.kind": "TOOL",
                    "tool.name": f"t{n}",
                    "tool.parameters": '{"type": "object", "properties": {}}',
                },
                parent="root",
            )
            for n in range(size)
        ]
    ),
    "tools that were asked for": asked_and(lambda number: tool(f"t{number}")),
    "tools that were asked for with one id": asked_and(
        lambda number: tool(f"t{number}", **{"gen_ai.tool.call.id": "x"}), {**CALL, "id": "x"}
    ),
    "tools with long arguments": asked_and(
        lambda number: tool(
            f"t{number}", **{ARGUMENTS: json.dumps({"a": [0.5] * 50, "b": number})}
        ),
        {"name": "t", "arguments": {"a": [0.5] * 50, "b": -1}},
    ),
    "handoffs that were asked for": asked_and(
        lambda number: NODES["handoffs"](f"h{number}", "root", number),
        {"name": "transfer_to_b", "arguments": "{}"},
    ),
    "handoffs instead of tools": asked_and(
        lambda number: NODES["handoffs"](f"h{number}", "root", number)
    ),
    "a list of objects": lambda size: Content(
        [tool("t", **{ARGUMENTS: json.dumps([{"a": 1}] * size), RESULT: json.dumps([[1]] * size)})]
    ),
    "a list of objects as Python writes it": lambda size: Content(
        [tool("t", **{ARGUMENTS: repr([{"a": 1}] * size), RESULT: repr([(1,)] * size)})]
    ),
    "numbered attributes": lambda size: Content(
        [
            model(
                "m",
                **{
                    "llm.request.type": "chat",
                    **{f"gen_ai.prompt.{n}.content": "x" for n in range(size)},
                    **{f"gen_ai.completion.{n}.tool_calls.0.name": "x" for n in range(size)},
                },
            )
        ]
    ),
    "events": lambda size: Content(
        [
            span(
                "m",
                "chat",
                operation("chat"),
                parent="root",
                error="x",
                events=[
                    *[("gen_ai.choice", {"message": json.dumps(ASKING)})] * size,
                    *[("exception", {})] * size,
                ],
            )
        ]
    ),
    "log records of a model call": lambda size: Content(
        [model("m")],
        [log("gen_ai.choice", body={"message": "x", "index": n}, span="m") for n in range(size)],
    ),
    "log records of a step": lambda size: Content(
        [span("p", "step", parent="root"), model("m", "p")],
        [log("gen_ai.choice", body={"message": "x", "index": n}, span="p") for n in range(size)],
    ),
    "moved texts": lambda size: Content(
        [model("m")],
        [
            log(
                "sc",
                body={"output": {"messages": [{"role": "assistant", "content": "x"}]}},
                scope="sc",
                span="m",
                time=n,
            )
            for n in range(size)
        ],
    ),
    "scenarios": lambda size: Content(
        [
            span(f"s{n}", "GET", parent="root", trace_state=f"pathgauge=c:{n};t:1")
            for n in range(size)
        ]
    ),
    "metadata above agents without a name": lambda size: Content(
        [
            span(
                "top",
                "z",
                {
                    "openinference.span.kind": "AGENT",
                    "metadata": json.dumps({"a": ["x"] * size * 4}),
                },
                parent="root",
            ),
            *(openinference("CHAIN")(f"s{n}", "top", n) for n in range(size // 4)),
        ]
    ),
}


def trace_of(spans: Sequence[Span], logs: Sequence[LogRecord]) -> Trace:
    return Trace("", spans[0].trace_id, tuple(spans), tuple(logs))


def trace_with_content(content: str, size: int) -> Trace:
    made = CONTENT[content](size)
    return trace_of([agent("root"), *made.spans], made.logs)


def trace_with_tree(nodes: str, tree: str, size: int) -> Trace:
    return trace_of(TREES[tree](NODES[nodes], size), ())
