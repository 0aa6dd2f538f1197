"""Finding and building scorers, with a package of another author on the path."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from pathgauge.collector.cli import app
from pathgauge.collector.cli.output import scorer_catalogue
from pathgauge.collector.cli.output.scorer_catalogue import CatalogueEntry, Option
from pathgauge.collector.config.plugins import scorers
from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.scorers.authoring.builders import invocation, tool_calls
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score
from support.packages import install
from support.repository import ROOT

ACME = '''
from dataclasses import dataclass
from typing import ClassVar

class _Common:
    version: ClassVar[str] = "2"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 10.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False
    def score(self, actual, expected): ...

@dataclass(frozen=True)
class Politeness(_Common):
    """How polite
    the answer is.

    A second paragraph.
    """
    name: ClassVar[str] = "acme_politeness"
    words: tuple[str, ...] = ("please",)

@dataclass(frozen=True)
class Unfinished:
    name: ClassVar[str] = "acme_unfinished"
    version: ClassVar[str] = "1"

@dataclass(frozen=True)
class Opaque(_Common):
    name: ClassVar[str] = "acme_opaque"
    thing: "Nowhere" = None

@dataclass(frozen=True)
class Untyped(_Common):
    name: ClassVar[str] = "acme_untyped"
    thing: type(lambda: None) = None

@dataclass(frozen=True)
class Waiting(_Common):
    name: ClassVar[str] = "acme_waiting"
    async def score(self, actual, expected): ...

@dataclass(frozen=True)
class WaitingForSessions(_Common):
    name: ClassVar[str] = "acme_waiting"
    async def score_session(self, turns, reference): ...

@dataclass(frozen=True)
class HalfAJudge(_Common):
    name: ClassVar[str] = "acme_judge"
    asks_model: ClassVar[bool] = True

@dataclass(frozen=True)
class Judge(HalfAJudge):
    template: ClassVar[str] = "1"
    model: str
    async def judge(self, actual, expected, ask): ...

class Plain(_Common):
    name: ClassVar[str] = "acme_plain"
'''

CHECKS = '''
def tools_present(instance, tools=["search"], at_least: "int" = 1):
    """Whether the tools
    were called.

    More.
    """
    return sum(call["tool_name"] in tools for call in instance["predicted_trajectory"]) // at_least

def other(row):
    return row["response"] == "done"
'''


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package `acme` with a module `acme_scorers`."""
    install(
        tmp_path,
        "scorers",
        acme_politeness="acme_scorers:Politeness",
        acme_lost="acme_scorers:Lost",
        acme_gone="acme_gone:Scorer",
    )
    (tmp_path / "acme_scorers.py").write_text(ACME, encoding="utf-8")
    (tmp_path / "acme_needy.py").write_text("import acme_dependency", encoding="utf-8")
    (tmp_path / "acme_broken.py").write_text("1 / 0", encoding="utf-8")
    (tmp_path / "acme_exits.py").write_text("raise SystemExit(0)", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Threefold:
    """Options of all kinds."""

    name: ClassVar[str] = "threefold"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = False
    needs_reference: ClassVar[bool] = True

    mode: Literal["one", "two"]
    """Which of the two,
    whatever they are."""
    strict: bool = True
    limit: int | None = None
    weights: tuple[float, ...] = (0.5, 0.5)
    words: dict[str, str] | None = None

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(0.0)


def test_a_scorer_is_found_by_its_entry_point_or_by_module_and_class(acme: Path) -> None:
    kind = scorers.scorer_class("acme_politeness")
    assert scorers.scorer_class("acme_scorers:Politeness") is kind
    assert kind.name == "acme_politeness"


def test_a_judge_that_lacks_a_part_of_one_is_named_with_it(acme: Path) -> None:
    whole = scorers.scorer_class("acme_scorers:Judge")
    assert scorers.build_scorer(whole, {"model": "local:small"}).name == "acme_judge"
    half = scorers.scorer_class("acme_scorers:HalfAJudge")
    with pytest.raises(PluginError) as caught:
        scorers.build_scorer(half, {})
    message = "the scorer HalfAJudge asks a model, and lacks model, template, judge"
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acme_politness", "no scorer 'acme_politness'; did you mean 'acme_politeness'?"),
        (
            "acme_lost",
            "the scorer 'acme_lost' of the installed package acme: the module 'acme_scorers' has"
            " no 'Lost'",
        ),
        (
            "acme_gone",
            "the scorer 'acme_gone' of the installed package acme: no module 'acme_gone'",
        ),
        ("acme_scorers:", "'acme_scorers:' is not of the form module:Class"),
        (":Politeness", "':Politeness' is not of the form module:Class"),
        ("acme_nowhere.deep:Scorer", "no module 'acme_nowhere.deep'; is its folder in PYTHONPATH?"),
        ("acme_scorers.deep:Scorer", "no module 'acme_scorers.deep'"),
        ("acme_scorers:Politeness.Rude", "the module 'acme_scorers' has no 'Politeness.Rude'"),
        (
            "acme_needy:Scorer",
            "importing the module 'acme_needy' failed: No module named 'acme_dependency'",
        ),
        (
            "acme_broken:Scorer",
            "importing the module 'acme_broken' failed: ZeroDivisionError: division by zero",
        ),
        ("acme_exits:Scorer", "importing the module 'acme_exits' failed: SystemExit: 0"),
        (
            "..x:Scorer",
            "importing the module '..x' failed: TypeError: the 'package' argument is required",
        ),
        (
            "json:dumps",
            "'json:dumps' cannot be a scorer: found the parameters (obj, skipkeys, ensure_ascii, ",
        ),
        (
            "json:__doc__",
            (
                "'json:__doc__' cannot be a scorer: found str, expected a function, or a class with"
                " a method evaluate"
            ),
        ),
        (
            "acme_scorers:Plain",
            "'acme_scorers:Plain' is not a scorer: found a plain class, expected a dataclass",
        ),
        (
            "acme_scorers:Waiting",
            (
                "'acme_scorers:Waiting' is not a scorer: found async def score, expected def: a"
                " scorer runs while traffic waits, so it must not wait"
            ),
        ),
        (
            "acme_scorers:WaitingForSessions",
            "'acme_scorers:WaitingForSessions' is not a scorer: found async def score_session,",
        ),
        (
            "acme_scorers:Unfinished",
            (
                "'acme_scorers:Unfinished' is not a scorer: it lacks low, high, higher_is_better,"
                " needs_reference, score"
            ),
        ),
    ],
)
def test_a_scorer_that_cannot_be_used_is_named_with_the_reason(
    acme: Path, name: str, expected: str
) -> None:
    with pytest.raises(PluginError) as caught:
        scorers.scorer_class(name)
    assert str(caught.value).startswith(expected)


def test_the_list_of_scorers_names_one_that_cannot_be_used(acme: Path) -> None:
    refused = CliRunner().invoke(app, ["scorers"])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        "pathgauge: the scorer 'acme_gone' of the installed package acme: no module 'acme_gone'\n"
    )


def test_a_name_that_is_like_no_other_lists_them_all(acme: Path) -> None:
    with pytest.raises(
        PluginError,
        match=r"^no scorer 'zzz'; the scorers are acme_gone, acme_lost, acme_politeness",
    ):
        scorers.scorer_class("zzz")


def test_one_name_of_two_packages_is_refused_and_the_same_scorer_twice_is_not(acme: Path) -> None:
    install(acme, "scorers", "same", acme_politeness="acme_scorers:Politeness")
    scorers.scorer_class("acme_politeness")
    install(acme, "scorers", "other", acme_politeness="acme_scorers:Plain")
    with pytest.raises(PluginError) as caught:
        scorers.scorer_class("acme_politeness")
    expected = (
        "several installed packages have a scorer 'acme_politeness': acme_scorers:Plain,"
        " acme_scorers:Politeness"
    )
    assert str(caught.value) == expected


def test_a_scorer_that_is_installed_later_is_found(acme: Path) -> None:
    with pytest.raises(PluginError, match="no scorer 'acme_later'"):
        scorers.scorer_class("acme_later")
    install(acme, "scorers", "acme_more", acme_later="acme_scorers:Politeness")
    assert scorers.scorer_class("acme_later") is scorers.scorer_class("acme_politeness")


def test_options_become_the_fields_of_the_scorer() -> None:
    options = {"mode": "two", "strict": False, "limit": 3, "weights": [1, 2]}
    assert scorers.build_scorer(Threefold, options) == Threefold("two", False, 3, (1.0, 2.0))


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "three"}, {"mode": "one", "strct": True}, {"mode": "one", "limit": "many"}],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        scorers.build_scorer(Threefold, options)


@dataclass(frozen=True)
class Check:
    type: bool
    limit: int | list[float] = 0


@dataclass(frozen=True)
class Checked:
    checks: tuple[Check, ...]
    default: Mapping[str, Any] = field(default_factory=lambda: {"type": "bool"})


def test_options_inside_of_options_are_no_less_strict_about_true_and_false() -> None:
    built = scorers.build_scorer(
        cast(Any, Checked),
        {"checks": [{"type": "true", "limit": [1]}, {"type": False, "limit": "2"}]},
    )
    assert built == cast(Any, Checked((Check(type=True, limit=[1.0]), Check(type=False, limit=2))))
    for check in ({"type": "on"}, {"type": True, "limit": True}, {"type": True, "limit": [True]}):
        with pytest.raises(ValidationError):
            scorers.build_scorer(cast(Any, Checked), {"checks": [check]})


@pytest.mark.parametrize("name", ["Opaque", "Untyped"])
def test_options_that_cannot_be_read_are_the_scorers_mistake(acme: Path, name: str) -> None:
    with pytest.raises(PluginError, match=rf"^the options of the scorer {name} cannot be read: "):
        scorers.build_scorer(scorers.scorer_class(f"acme_scorers:{name}"), {})


@pytest.mark.parametrize("error", [RuntimeError("no licence"), SystemExit("no licence")])
def test_a_scorer_that_cannot_be_built_is_named_with_the_reason(error: BaseException) -> None:
    @dataclass(frozen=True)
    class Unlicensed(Threefold):
        def __post_init__(self) -> None:
            raise error

    text = rf"^the scorer .*Unlicensed cannot be built: {type(error).__name__}: no licence$"
    with pytest.raises(PluginError, match=text):
        scorers.build_scorer(Unlicensed, {"mode": "one"})


def test_the_catalogue_tells_how_to_use_a_scorer(acme: Path) -> None:
    assert scorer_catalogue.describe("threefold", Threefold) == CatalogueEntry(
        name="threefold",
        summary="Options of all kinds.",
        options=(
            Option("mode", "one | two", required=True, text="Which of the two, whatever they are."),
            Option("strict", "true | false", True),
            Option("limit", "whole number | null", None),
            Option("weights", "list of number", [0.5, 0.5]),
            Option("words", "mapping | null", None),
        ),
        low=-1.0,
        high=1.0,
        higher_is_better=False,
        needs_reference=True,
        version="1",
    )
    politeness = scorer_catalogue.describe(
        "acme_politeness", scorers.scorer_class("acme_politeness")
    )
    assert politeness.summary == "How polite the answer is."
    assert politeness.options == (Option("words", "list of text", ["please"]),)


@dataclass(frozen=True)
class Rule:
    """One part of an option."""

    tool: str
    at_most: int = 1


class Opaque:
    """Something that JSON has no word for."""


@dataclass(frozen=True)
class Intricate(Threefold):
    """Options that are hard to show."""

    __pydantic_config__: ClassVar[dict[str, bool]] = {"arbitrary_types_allowed": True}

    mode: Literal["only"] = "only"  # type: ignore[assignment]
    rules: tuple[Rule, ...] = (Rule("search"),)
    either: Rule | str | None = None
    pair: tuple[str, int] = ("a", 1)
    nested: tuple[tuple[Literal["a", 1], ...], ...] = ()
    counts: Mapping[str, int] | None = None
    pattern: re.Pattern[str] | None = None
    opaque: Opaque | None = None
    checks: tuple[Opaque, ...] = field(default=(Opaque(),), metadata={"written": "list of names"})


def test_options_of_any_kind_are_shown() -> None:
    shown = {
        option.name: (option.type, option.default)
        for option in scorer_catalogue.describe("intricate", Intricate).options
    }
    assert {
        name: shown[name] for name in shown if name not in ("strict", "limit", "weights", "words")
    } == {
        "mode": ("only", "only"),
        "rules": ("list of mapping of tool, at_most", [{"tool": "search", "at_most": 1}]),
        "either": ("mapping of tool, at_most | text | null", None),
        "pair": ("list of text and whole number", ["a", 1]),
        "nested": ("list of list of a | 1", []),
        "counts": ("mapping | null", None),
        "pattern": ("text | null", None),
        "opaque": ("anything | null", None),
        "checks": ("list of names", None),
    }


def test_a_function_is_a_scorer_with_its_options(acme: Path) -> None:
    (acme / "acme_checks.py").write_text(CHECKS, encoding="utf-8")
    kind = scorers.scorer_class("acme_checks:tools_present")
    assert scorer_catalogue.describe("tools_present", kind) == CatalogueEntry(
        name="tools_present",
        summary="Whether the tools were called.",
        options=(
            Option("low", "number", 0.0, text="The lowest value that the check can return."),
            Option("high", "number", 1.0, text="The highest value that the check can return."),
            Option(
                "higher_is_better",
                "true | false",
                True,
                text="If true, values from the threshold up pass; else values up to the threshold.",
            ),
            Option("tools", "anything", None),
            Option("at_least", "whole number", 1),
        ),
        low=0.0,
        high=1.0,
        higher_is_better=True,
        needs_reference=False,
        version="1",
    )
    assert scorers.build_scorer(kind, {"tools": ["a"]}).score(
        invocation(*tool_calls("a b")), None
    ) == Score(1.0, None, "returned 1")


def test_what_the_parameters_of_a_function_receive_can_be_said(acme: Path) -> None:
    (acme / "acme_checks.py").write_text(CHECKS, encoding="utf-8")
    with pytest.raises(
        PluginError,
        match=(
            r"^'acme_checks:other' cannot be a scorer: found the parameters \(row\), expected one"
            r" called "
        ),
    ):
        scorers.scorer_class("acme_checks:other")
    scorer = scorers.build_scorer(scorers.scorer_class("acme_checks:other", ["instance"]), {})
    assert scorer.score(invocation(final_response="done"), None).value == 1.0
    with pytest.raises(
        PluginError,
        match=(
            r"^'failure' is a scorer as it stands, expected a function for takes to say what it"
            r" takes$"
        ),
    ):
        scorers.scorer_class("failure", ["instance"])


REQUIRED: dict[str, Any] = {
    "criteria": {"Polite": "Is it polite?"},
    "rating_rubric": {"1": "yes", "0": "no"},
    "rubrics": ["It is polite."],
}


def test_every_built_in_scorer_is_registered_under_its_own_name_and_builds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    registered: dict[str, str] = project["project"]["entry-points"][scorers.SCORERS.group]
    for name, reference in registered.items():
        kind = scorers.scorer_class(reference)
        entry = scorer_catalogue.describe(name, kind)
        assert (kind.name, bool(entry.summary)) == (name, True)
        options = {
            option.name: REQUIRED.get(option.name, "search")
            for option in entry.options
            if option.required
        }
        assert scorers.build_scorer(kind, options).name == name
    installed = {point.name: point.value for point in entry_points(group=scorers.SCORERS.group)}
    assert registered.items() <= installed.items()
    assert {entry.name for entry in scorer_catalogue.catalogue()} >= set(registered)


@pytest.mark.parametrize(
    "name", ["scorers:ToolTrajectoryF1", "scorers.trajectories.trajectory:ToolTrajectoryF1"]
)
def test_a_former_name_of_ours_is_refused_with_the_new_one(name: str) -> None:
    with pytest.raises(PluginError, match="imported as 'pathgauge:ToolTrajectoryF1'"):
        scorers.scorer_class(name)
