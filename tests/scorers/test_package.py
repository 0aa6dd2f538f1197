"""What the package shows to its users, and what it costs to import."""

import subprocess
import sys

import pytest

import scorers

HEAVY = ("jsonschema", "nltk", "regex", "rouge_score", "pydantic", "openai", "httpx", "collector")


def loaded_after(statements: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after these statements."""
    code = f"import sys; {statements}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_all_public_names_exist_and_are_sorted() -> None:
    assert list(scorers.__all__) == sorted(scorers.__all__)
    assert set(scorers.__all__) <= set(dir(scorers))
    assert [name for name in scorers.__all__ if not hasattr(scorers, name)] == []


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'scorers' has no attribute 'Nonsense'"):
        _ = scorers.Nonsense


@pytest.mark.parametrize(
    ("statements", "loaded"),
    [
        ("import scorers, scorers.testing", set()),
        ("from scorers import ToolTrajectoryF1; ToolTrajectoryF1('name_and_required_args', ordered=False)", set()),
        ("from scorers import ResponseMatchScore; ResponseMatchScore(stemmer=False)", set()),
        ("from scorers import ResponseMatchScore; ResponseMatchScore()", {"nltk", "regex", "rouge_score"}),
        ("from scorers import ArgumentValidity", {"jsonschema", "regex"}),
        ("from scorers import Composite, Safety", {"pydantic", "regex"}),
        ("from scorers import *", {"jsonschema", "pydantic", "regex"}),
    ],
)
def test_heavy_libraries_are_loaded_by_the_scorers_that_need_them(statements: str, loaded: set[str]) -> None:
    assert loaded_after(statements) == loaded
