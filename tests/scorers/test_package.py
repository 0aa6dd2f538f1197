"""What the package shows to its users, and what it costs to import."""

import subprocess
import sys

import pytest

import scorers

HEAVY = ("networkx", "nltk", "rouge_score", "pydantic", "collector")


def loaded_after(statements: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after these statements."""
    code = f"import sys; {statements}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_all_public_names_exist_and_are_sorted() -> None:
    assert scorers.__all__ == sorted(scorers.__all__)
    assert [name for name in scorers.__all__ if not hasattr(scorers, name)] == []


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'scorers' has no attribute 'Bleu'"):
        _ = scorers.Bleu


@pytest.mark.parametrize(
    ("statements", "loaded"),
    [
        ("import scorers, scorers.testing", set()),
        ("from scorers import *", {"nltk", "rouge_score"}),
        ("from scorers import ResponseMatchScore", {"nltk", "rouge_score"}),
        ("from scorers import ToolTrajectoryF1; ToolTrajectoryF1(ordered=False)", set()),
        ("from scorers import ToolTrajectoryF1; ToolTrajectoryF1('name_and_required_args')", set()),
        ("from scorers import ToolTrajectoryF1; ToolTrajectoryF1('name_and_required_args', ordered=False)", {"networkx"}),
    ],
)
def test_heavy_libraries_are_loaded_by_the_scorers_that_need_them(statements: str, loaded: set[str]) -> None:
    assert loaded_after(statements) == loaded
