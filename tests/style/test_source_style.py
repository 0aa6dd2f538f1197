"""Limits of the source code that the linters do not know."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from radon.complexity import cc_visit
from radon.visitors import Class

from support.repository import ROOT

SHIPPED = ("collector", "scorers", "deploy", "docs", "examples")
MAX_COMPLEXITY = 15
"""Of one function; conditional expressions and comprehensions count. Not for tests, because
assertions count, too.
"""


def complex_functions(source: str) -> Iterator[str]:
    """Functions and methods beyond the limit."""
    for block in cc_visit(source):
        if not isinstance(block, Class) and block.complexity > MAX_COMPLEXITY:
            yield f"{block.fullname}: {block.complexity}"


def nested_conditionals(source: str) -> Iterator[int]:
    """Lines of conditional expressions that contain another one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.IfExp) and any(map(_holds_conditional, ast.iter_child_nodes(node))):
            yield node.lineno


def _holds_conditional(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.IfExp) for node in ast.walk(tree))


def findings(check: Callable[[str], Iterator[object]], *folders: str) -> dict[str, list[object]]:
    """What `check` finds in each source file that has something to find."""
    paths = (path for name in folders for path in (ROOT / name).rglob("*.py"))
    found = {str(path.relative_to(ROOT)): list(check(path.read_text())) for path in paths}
    return {path: some for path, some in found.items() if some}


def test_no_function_is_too_complex() -> None:
    assert findings(complex_functions, *SHIPPED) == {}


def test_no_conditional_expression_contains_another_one() -> None:
    assert findings(nested_conditionals, *SHIPPED, "tests") == {}


def test_the_limits_find_what_they_forbid() -> None:
    branches = "\n".join(f"    if x == {n}: return {n}" for n in range(MAX_COMPLEXITY))
    assert list(complex_functions(f"def f(x):\n{branches}\n")) == [f"f: {MAX_COMPLEXITY + 1}"]
    assert list(nested_conditionals("a = 1\nb = 2 if a else (3 if b else 4)\n")) == [2]
