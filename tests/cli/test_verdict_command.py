"""`pathgauge verdict` compares two versions, with an exit status for pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import Result

from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.cli.result_sources.source import SourceError, UnavailableError
from pathgauge.collector.cli.result_sources.waiting import POLL_S, UNKNOWN_S, when_decided
from pathgauge.collector.core.verdicts.comparison import Outcome
from support.api_client import client, sources, with_tokens
from support.evaluated import opened
from support.serving import serving
from support.two_versions import fill, runs, with_criteria

Run = Callable[..., Result]

CONFIGURATION = {
    "store": {"path": "data"},
    "criteria": {"trajectory": {"scorer": "tool_trajectory_avg_score", "threshold": 1.0}},
    "references": ["parcel.yaml"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collector")
    (folder / "pathgauge.yaml").write_text(json.dumps(CONFIGURATION))
    (folder / "parcel.yaml").write_text("scenario: parcel\nexpected_tools: []\n")
    with opened(folder / "data") as opened_store:
        fill(opened_store, [*runs("1", "p" * 400), *runs("2", "f" * 40), *runs("3", "p" * 480)])
    return folder


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[str]:
    """The URL of the API over the same store, with tokens."""
    app = client(with_criteria(sources(store / "data")), with_tokens(store)).app
    with serving(app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def verdict(source: Sequence[object], run: Run) -> Run:
    """`verdict` with the store, and with the API."""

    def ask(version: str, against: str, *options: object) -> Result:
        names = "--agent", "support", "--version", version, "--against", against
        return run("verdict", *names, *source, *options)

    return ask


@pytest.mark.parametrize(
    ("version", "against", "status", "word"),
    [
        ("1", "2", 0, "better"),
        ("3", "1", 0, "not_worse"),
        ("2", "1", 1, "worse"),
        ("4", "1", 3, "undecided"),
    ],
)
def test_the_exit_status_is_the_verdict(
    verdict: Run, version: str, against: str, status: int, word: str
) -> None:
    found = verdict(version, against, "--json")
    assert (found.exit_code, json.loads(found.stdout)["verdict"]) == (status, word)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--since", "2999-01-01"), "support has results of 3, 2, 1 without --since"),
        (("--until", "2001-01-01"), "support has results of 3, 2, 1 without --until"),
        (
            ("--scenario", "parcl"),
            "scenario: found 'parcl', expected a scenario with results, such as parcel; did you"
            " mean 'parcel'?",
        ),
    ],
)
def test_an_option_that_leaves_out_all_results_is_named(
    verdict: Run, options: tuple[str, ...], message: str
) -> None:
    found = verdict("2", "1", *options)
    told = "pathgauge: no result of the version fits the options\n"
    assert (found.exit_code, found.stderr) == (3, f"{told}pathgauge: {message}\n")


def test_without_scores_in_shadow_no_version_is_called_missing(
    source: Sequence[object], run: Run
) -> None:
    found = run("verdict", "--agent", "support", "--shadow", *source)
    told = "pathgauge: no result that fits the options has scores in shadow\n"
    assert (found.exit_code, found.stderr) == (3, told)


def test_a_pipe_gets_the_verdict_and_a_row_for_each_metric(verdict: Run) -> None:
    found = verdict("2", "1")
    line, headings, row = found.stdout.splitlines()
    assert line == "support 2 against 1: worse"
    assert headings.split("\t") == [
        *("metric", "verdict", "difference", "interval", "version", "against", "pairs", "why"),
    ]
    assert row == "trajectory\tworse\t-1.000\t-1.000 to -0.737\t0.000\t1.000\t40\t"
    assert found.stderr == ""


def test_without_results_standard_error_says_which_are_missing(verdict: Run) -> None:
    found = verdict("4", "1")
    assert found.stderr == (
        "pathgauge: no result of the version fits the options\n"
        "pathgauge: support has results of 3, 2, 1\n"
    )
    assert found.stdout.splitlines()[-1].endswith("\t0\tthe version has no score")


def test_options_change_what_is_compared(verdict: Run) -> None:
    assert verdict("3", "1", "--margin", "0.001").exit_code == 3
    assert verdict("2", "1", "--scenario", "other").exit_code == 3
    assert verdict("2", "1", "--since", "2026-11-18T11:20:00Z").exit_code == 3
    assert verdict("2", "1", "--metric", "trajectory", "--confidence", "0.99").exit_code == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metric", "x"), "metric: found x, expected one of trajectory"),
        (
            ("--metric", "trajectory", "--metric", "x"),
            "metric: found x, expected one of trajectory",
        ),
        (("--since", "soon"), "--since: found 'soon', expected a time such as"),
        (("--wait", "soon"), "--wait: found 'soon', expected a duration such as 6s"),
        (("--confidence", "2"), "Input should be less than or equal to 0.9999"),
    ],
)
def test_a_wrong_option_is_no_verdict(verdict: Run, options: tuple[str, ...], message: str) -> None:
    found = verdict("2", "1", *options)
    assert (found.exit_code, found.stdout) == (2, "")
    assert message in found.stderr


def test_a_version_is_not_compared_with_itself(verdict: Run) -> None:
    found = verdict("1", "1", "--wait", "30m")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "--against: found '1', expected another version than" in found.stderr


def test_without_a_store_on_disk_there_is_no_verdict_to_wait_for(run: Run, tmp_path: Path) -> None:
    names = "--agent", "support", "--version", "2", "--against", "1", "--wait", "30m"
    configuration = tmp_path / "pathgauge.yaml"
    configuration.write_text("store: memory\n")
    with serving(client(with_criteria(sources(None))).app) as port:
        for source in (("--config", configuration), ("--url", f"http://127.0.0.1:{port}")):
            found = run("verdict", *names, *source)
            assert (found.exit_code, found.stdout) == (2, "")
            assert "found memory, expected a store on disk" in found.stderr


def test_a_store_that_is_not_there_is_no_verdict(run: Run) -> None:
    found = run("verdict", "--agent", "a", "--version", "2", "--against", "1")
    assert (found.exit_code, found.stdout) == (2, "")


def test_an_agent_without_results_is_compared_with_those_that_have_some(
    run: Run, source: Sequence[object]
) -> None:
    names = "--agent", "suport", "--version", "2", "--against", "1"
    found = run("verdict", *names, *source)
    assert found.exit_code == 3
    assert found.stderr.endswith(
        "\npathgauge: agent: found 'suport', expected an agent with results, such as support;"
        " did you mean 'support'?\n"
    )
    shadow = run("verdict", "--agent", "suport", "--shadow", *source)
    assert "did you mean 'support'?" in shadow.stderr


def test_waiting_for_an_unknown_agent_ends_soon(capsys: pytest.CaptureFixture[str]) -> None:
    undecided: list[Outcome] = ["undecided"]
    collector = Collector(*undecided * 9)
    with pytest.raises(SourceError, match="did you mean"):
        collector.wait(3600.0, lambda _: "did you mean 'support'?")
    assert collector.now == UNKNOWN_S
    assert capsys.readouterr().err == "pathgauge: did you mean 'support'?\n"
    hints = [None, "unknown", "unknown", None]
    collector = Collector(*undecided * 4, "better")
    assert collector.wait(3600.0, lambda _: hints.pop(0)) == "better"


class Collector:
    """Gives one answer after the other; its clock moves when somebody sleeps."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.now = 0.0
        self.answers = [*answers]

    def ask(self) -> ReleaseVerdict:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ReleaseVerdict.model_construct(verdict=answer)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(
        self, patience_s: float, misspelt: Callable[[ReleaseVerdict], str | None] = lambda _: None
    ) -> Outcome:
        return when_decided(
            self.ask, patience_s, lambda: self.now, self.sleep, misspelt=misspelt
        ).verdict


@pytest.mark.parametrize(
    ("patience_s", "answers", "decided", "at"),
    [
        (0.0, ["undecided"], "undecided", 0.0),
        (60.0, ["worse"], "worse", 0.0),
        (60.0, ["undecided", "undecided", "not_worse"], "not_worse", 2 * POLL_S),
        (25.0, ["undecided"] * 4, "undecided", 25.0),
        (60.0, [UnavailableError("busy"), "better"], "better", POLL_S),
    ],
)
def test_waiting_ends_with_the_first_verdict_or_with_the_time(
    patience_s: float, answers: list[Outcome | Exception], decided: str, at: float
) -> None:
    collector = Collector(*answers)
    assert (collector.wait(patience_s), collector.now, collector.answers) == (decided, at, [])


@pytest.mark.parametrize(
    ("patience_s", "error"), [(60.0, SourceError("token")), (0.0, UnavailableError("busy"))]
)
def test_waiting_ends_with_an_error_that_stays(patience_s: float, error: Exception) -> None:
    with pytest.raises(SourceError, match=str(error)):
        Collector(error).wait(patience_s)
