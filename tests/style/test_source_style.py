"""Limits of the source code that the linters do not know."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from radon.complexity import cc_visit
from radon.visitors import Class

from support.repository import ROOT

SHIPPED = ("collector", "scorers", "deploy", "docs", "examples")
MAX_COMPLEXITY = 15
"""Of one function; conditional expressions and comprehensions count. Not for tests, because
assertions count, too.
"""

PLURAL = re.compile(
    r" (?!has|in)(?:[a-z]+ )?(?:alarms|answers|calls|conversations|criteria|failures|files"
    r"|invocations|lines|mistakes|proposals|reasons|records|references|requests|results|rows|runs|scenarios"
    r"|scores|spans|traces|turns)\b(?!/)"
)
UNAFFECTED = re.compile(r"\b(?:of|than|most|least|newest|oldest|first|last) $")
"""`1 of 1 runs` is how a share is written."""
POSSESSIVE_GROUP = re.compile(r"(?<![\\(])\)(?:[*+?]|\{[\d,]+\})\+")


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


def plurals_of_any_count(source: str) -> Iterator[str]:
    """Counts in front of a plural, which are wrong for one: `counted` and `plural` are right."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        texts = ["", *map(_text, node.values), ""]
        for place, value in enumerate(node.values):
            if not isinstance(value, ast.FormattedValue) or ast.unparse(value.value).isupper():
                continue  # bounds have names in capitals
            if PLURAL.match(texts[place + 2]) and not UNAFFECTED.search(texts[place]):
                yield f"{ast.unparse(value.value)}{texts[place + 2]}"


def possessive_groups(source: str) -> Iterator[int]:
    """Lines of patterns that repeat a group possessively, as in `(?:a|bc)*+`. Python before 3.11.5
    matches them wrongly: write `(?>(?:a|bc)*)`.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str | bytes):
            continue
        text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        if POSSESSIVE_GROUP.search(text):
            yield node.lineno


def _text(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else ""


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


def test_a_count_has_the_right_form_of_its_noun() -> None:
    assert findings(plurals_of_any_count, "collector", "scorers") == {}


def test_no_pattern_repeats_a_group_possessively() -> None:
    assert findings(possessive_groups, "collector", "scorers") == {}


def test_the_limits_find_what_they_forbid() -> None:
    branches = "\n".join(f"    if x == {n}: return {n}" for n in range(MAX_COMPLEXITY))
    assert list(complex_functions(f"def f(x):\n{branches}\n")) == [f"f: {MAX_COMPLEXITY + 1}"]
    assert list(nested_conditionals("a = 1\nb = 2 if a else (3 if b else 4)\n")) == [2]
    assert list(possessive_groups("a = r'(?:a|bc)*+'\nb = rb'(a){2,3}+'\nc = r'\\)*+'")) == [1, 2]
    messages = "f'{n} runs of {m} spans'; f'{MAX_N} runs'; f'{n} of {m} runs'; f'{len(n)} new runs'"
    assert list(plurals_of_any_count(messages)) == ["n runs of ", "len(n) new runs"]
