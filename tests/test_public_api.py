"""`pathgauge` is the single public API: complete, quick to import, and safe beside a user's
folders.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pathgauge

HEAVY = (
    "jsonschema",
    "nltk",
    "regex",
    "rouge_score",
    "pydantic",
    "openai",
    "httpx",
    "google",
    "grpc",
)
STUB = Path(pathgauge.__file__).with_suffix(".pyi")
USERS_TEST = """
import scorers, collector
from pathgauge import ToolTrajectoryF1, check_scorer


def test_the_users_own_folders_win():
    assert scorers.OWNER == collector.OWNER == "the user"
    check_scorer(ToolTrajectoryF1())
"""


def loaded_after(statements: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after these statements."""
    code = f"import sys; {statements}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_every_public_name_exists() -> None:
    assert [name for name in pathgauge.__all__ if not hasattr(pathgauge, name)] == []


def test_the_stub_lists_each_name_once_and_in_order() -> None:
    imports = [
        node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ImportFrom)
    ]
    names = [alias.name for node in imports for alias in node.names]
    assert sorted(names) == sorted(pathgauge.__all__)
    assert [node.module for node in imports] == sorted({node.module or "" for node in imports})
    assert all(alias.name == alias.asname for node in imports for alias in node.names)


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = pathgauge.Nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("statements", "loaded"),
    [
        ("import pathgauge", set()),
        ("from pathgauge import check_scorer, invocation", set()),
        (
            "from pathgauge import ToolTrajectoryF1;"
            " ToolTrajectoryF1('name_and_required_args', ordered=False)",
            set(),
        ),
        ("from pathgauge import ResponseMatchScore; ResponseMatchScore(stemmer=False)", set()),
        (
            "from pathgauge import ResponseMatchScore; ResponseMatchScore()",
            {"regex", "rouge_score"},
        ),
        ("from pathgauge import ArgumentValidity", {"jsonschema", "regex"}),
        ("from pathgauge import Composite, Safety", {"pydantic", "regex"}),
    ],
)
def test_heavy_libraries_are_loaded_by_the_names_that_need_them(
    statements: str, loaded: set[str]
) -> None:
    assert loaded_after(statements) == loaded


@pytest.fixture
def users_folder(tmp_path: Path) -> Path:
    """A repository whose folders have the names of ours."""
    for name in ("scorers", "collector", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('OWNER = "the user"\n')
    (tmp_path / "tests" / "test_mine.py").write_text(USERS_TEST)
    return tmp_path


@pytest.mark.slow
def test_the_command_works_in_a_folder_with_the_same_names(users_folder: Path) -> None:
    command = Path(sys.executable).with_name("pathgauge")
    run = subprocess.run(
        [command, "scorers", "--json"],
        cwd=users_folder,
        env={"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert '"tool_trajectory_f1"' in run.stdout


@pytest.mark.slow
def test_a_users_pytest_works_in_a_folder_with_the_same_names(users_folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    run = subprocess.run(command, cwd=users_folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
