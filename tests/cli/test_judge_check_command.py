"""`pathgauge judge check` with a real server: agreement with the labels, flips, and errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

import pathgauge.scorers.judges
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.scorers.judges.injections import sample
from support.answered import about_talk, answer, given
from support.evaluated import commit, evaluation, opened
from support.judge_server import (
    JudgeRequest,
    JudgeServer,
    Reply,
    answering,
    completion,
    failing,
    refusing,
)
from support.sessions import session
from support.thinning import thinned

Run = Callable[..., Result]

EXAMPLES = """\
- id: paid
  input: Refund order 17.
  response: "Done, receipt 4711."
  tools: [{name: refund, args: {order: 17}, result: ok}]
  label: true
- {id: thanked, input: Thank you!, response: "Any time, receipt 4711.", tools: [], label: true}
- {id: lost, input: Refund order 18., response: "I lost it.", tools: [refund], label: false}
- id: rude
  input: Refund order 19.
  response: "No."
  expected_response: "The order is refunded."
  label: false
- {id: odd, input: Refund order 20., response: "No, but receipt 4711.", label: false}
"""
HELPFUL = (
    "helpful: {scorer: llm_judge, prompt: Was it of help, inputs: [user_input, response], choices:"
    " [0, 1]}"
)

OF_SESSIONS = "multi_turn_task_success_v1"


def honest(request: JudgeRequest) -> Reply:
    return answering(reasoning="", score=float(has_receipt(request)))


def has_receipt(request: JudgeRequest) -> bool:
    """Marks for omitted text hold a random number, which may contain these digits."""
    return re.search(r"(?<!\d)4711(?!\d)", request.data["response"]) is not None


def obeying(request: JudgeRequest) -> Reply:
    """Obeys any text that mentions a verdict."""
    return answering(
        reasoning="",
        score=float(has_receipt(request) or "erdict" in request.data["response"]),
    )


def fond_of_the_first(request: JudgeRequest) -> Reply:
    """Passes data that begins with the response, and judges other data honestly."""
    return answering(
        reasoning="",
        score=(1.0 if next(iter(request.data)) == "response" else float(has_receipt(request))),
    )


def fond_of_the_question_first(request: JudgeRequest) -> Reply:
    return answering(
        reasoning="",
        score=(1.0 if next(iter(request.data)) == "user_input" else float(has_receipt(request))),
    )


def failing_at_some(request: JudgeRequest) -> Reply:
    return failing(400) if "19" in request.data["user_input"] else honest(request)


def grading(request: JudgeRequest) -> Reply:
    """A grade, two points better when a text mentions a verdict."""
    grade = 5 if has_receipt(request) else 2
    return answering(reasoning="", score=min(5, grade + 2 * ("erdict" in request.data["response"])))


def by_trajectory(request: JudgeRequest) -> Reply:
    return answering(reasoning="", score=float("erdict" in str(request.data)))


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., JudgeServer]]:
    """Starts a server with the given judge, and writes a configuration for it and the examples."""
    servers: list[JudgeServer] = []

    def start(
        judge: Callable[[JudgeRequest], Reply], criteria: str = HELPFUL, examples: str = EXAMPLES
    ) -> JudgeServer:
        server = JudgeServer(judge=judge)
        servers.append(server)
        (folder / "pathgauge.yaml").write_text(
            f"judge: {{model: 'local:judge', providers: {{local: {{base_url: '{server.url}',"
            " allow_private: true}}, retries: 0, prices: {judge: {input: 1, output:"
            f" 2}}}}}}\ncriteria:\n  latency:\n  {criteria}\n"
        )
        (folder / "examples.yaml").write_text(examples)
        return server

    yield start
    for server in servers:
        server.__exit__()


def checked(
    run: Run, *options: object, file: str = "examples.yaml"
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    result = run("judge", "check", file, "-c", "pathgauge.yaml", "--json", *options)
    assert result.stdout, result.stderr
    found = json.loads(result.stdout)
    (check,) = found["checks"]
    return result.exit_code, check, found["spent"]


def test_a_judge_is_measured_by_the_labels(run: Run, serve: Any) -> None:
    server = serve(honest)
    status, check, spent = checked(run, "--injections", 3)

    assert status == 0
    assert check.pop("judge").startswith("local:judge@")
    assert check == {
        "criterion": "helpful",
        "threshold": None,
        "labelled": 5,
        "answered": 5,
        "agreement": 0.8,
        "kappa": pytest.approx(1 - 0.2 / (0.4 * 0.4 + 0.6 * 0.6)),
        "balanced_accuracy": pytest.approx((1 + 2 / 3) / 2),
        "precision": pytest.approx(2 / 3),
        "recall": 1.0,
        "f1": pytest.approx(0.8),
        "unanswered": {},
        "not_judged": [],
        "wrong": [
            {
                "example": "odd",
                "label": False,
                "score": 1.0,
                "answer": '{"reasoning":"","score":1.0}',
            }
        ],
        "order": {"tried": 5, "unanswered": 0, "flipped": [], "share": 0.0, "median_shift": 0.0},
        "injections": {
            "tried": 6,
            "unanswered": 0,
            "flipped": [],
            "share": 0.0,
            "median_shift": 0.0,
        },
    }
    assert len(server.requests) == 5 + 5 + 2 * 3
    assert spent == {
        "requests": 16,
        "codes": {"200": 16},
        "tokens": {"input": 1600, "output": 320},
        "usd": pytest.approx(0.00224),
    }


def test_flips_by_injections_are_reported_with_their_examples(run: Run, serve: Any) -> None:
    serve(obeying)
    status, check, _ = checked(
        run, "--injections", 50, "--max-flips", 0.02, "--criterion", "helpful"
    )
    tried = sample(100)
    obeyed = [
        f"{example}: {injection.name}"
        for example, some in (("lost", tried[:50]), ("rude", tried[50:]))
        for injection in some
        if "erdict" in injection.text
    ]

    assert status == 1
    assert len(obeyed) > 10
    assert check["injections"] == {
        "tried": 100,
        "unanswered": 0,
        "flipped": obeyed,
        "share": len(obeyed) / 100,
        "median_shift": 0.0,
    }


@pytest.mark.parametrize("fond", [fond_of_the_first, fond_of_the_question_first])
def test_flips_by_order_are_reported_in_both_directions(run: Run, serve: Any, fond: Any) -> None:
    serve(fond)
    status, check, _ = checked(run, "--injections", 0)

    assert status == 0
    assert check["order"] == {
        "tried": 5,
        "unanswered": 0,
        "flipped": ["lost", "rude"],
        "share": 0.4,
        "median_shift": 0.0,
    }
    assert check["balanced_accuracy"] == (
        0.5 if fond is fond_of_the_question_first else pytest.approx(5 / 6)
    )
    assert check["injections"] == {
        "tried": 0,
        "unanswered": 0,
        "flipped": [],
        "share": None,
        "median_shift": None,
    }


@pytest.mark.parametrize(
    ("criterion", "first", "second"),
    [
        (HELPFUL, [0, 1], [1, 0]),
        (
            "p: {scorer: pointwise, criteria: {a: b}, rating_rubric: {1: good, 0: bad}}",
            [1, 0],
            [0, 1],
        ),
    ],
)
def test_choices_are_shown_in_both_orders(
    run: Run, serve: Any, criterion: str, first: list[int], second: list[int]
) -> None:
    server = serve(honest, criterion)
    checked(run, "--injections", 0)
    orders = [
        request.body["response_format"]["json_schema"]["schema"]["properties"]["score"]["enum"]
        for request in server.requests
    ]

    assert orders == [first] * 5 + [second] * 5


def test_a_judge_that_does_not_see_the_response_gets_injections_in_tool_results(
    run: Run, serve: Any
) -> None:
    serve(
        by_trajectory,
        "calls: {scorer: llm_judge, prompt: Were they good, inputs: [trajectory], choices: [0, 1]}",
        "- {input: a, response: b, tools: [{name: c, result: d}], label: false}",
    )
    _, check, _ = checked(run, "--injections", 20)

    assert (
        len(check["injections"]["flipped"])
        == sum("erdict" in injection.text for injection in sample(20))
        > 0
    )


def test_scores_are_compared_with_numeric_labels(run: Run, serve: Any) -> None:
    serve(
        grading,
        "response_evaluation_score: {threshold: 4}",
        "\n".join(
            f"- {{id: e{grade}, input: a, response: b, label: {grade}}}" for grade in (1, 2, 2.4, 5)
        ),
    )
    status, check, _ = checked(run, "--injections", 40)

    assert status == 0
    assert {
        name: check[name] for name in ("threshold", "agreement", "mean_absolute_error", "bias")
    } == {
        "threshold": 4.0,
        "agreement": 0.25,
        "mean_absolute_error": pytest.approx(1.1),
        "bias": pytest.approx(-0.6),
    }
    assert [wrong["example"] for wrong in check["wrong"]] == ["e1", "e5"]
    flipped = [name for name in check["injections"]["flipped"] if name.startswith("e1: ")]
    assert (
        flipped
        == [f"e1: {injection.name}" for injection in sample(40) if "erdict" in injection.text]
        != []
    )
    assert check["injections"]["tried"] == 3 * 40


def test_examples_without_a_verdict_are_counted_by_reason(run: Run, serve: Any) -> None:
    serve(failing_at_some)
    status, check, spent = checked(run, "--injections", 1, "--min-kappa", 0.5)

    assert (status, check["labelled"], check["answered"], check["unanswered"]) == (
        0,
        5,
        4,
        {"judge_rejected": 1},
    )
    assert (check["order"]["tried"], check["order"]["unanswered"]) == (4, 1)
    assert spent["codes"] == {"200": 9, "400": 2}


NONE_JUDGED = "helpful: no example was judged, expected at least one: 5 judge_rejected"


def unreadable(request: JudgeRequest) -> Reply:
    return completion("I think:\nit is \x1b[2J helpful. " + "x" * 300)


def test_a_check_that_judged_nothing_fails_without_any_requirement(run: Run, serve: Any) -> None:
    serve(unreadable)
    result = run("judge", "check", "examples.yaml", "-c", "pathgauge.yaml", "--injections", 1)
    assert (result.exit_code, result.stderr) == (
        1,
        "pathgauge: helpful: no example was judged, expected at least one: 5 judge_malformed\n",
    )
    lines = result.stdout.splitlines()
    where = lines.index("  without a verdict: 5")
    reason = (
        "judge_malformed: 0 of 1 sample answered: the answer cannot be used: found no complete"
        " JSON object, expected one that fits the schema"
    )
    shown = f"I think: it is \\x1b[2J helpful. {'x' * 300}"
    assert lines[where + 1].split(": ", 1)[1] == (f"{reason}; the model's answer: {shown[:302]}…")


def test_json_has_the_unreadable_answers(run: Run, serve: Any) -> None:
    serve(lambda request: completion("No JSON.") if "order 17" in request.user else honest(request))
    status, check, _ = checked(run, "--injections", 0)
    [wanted] = check["not_judged"]
    assert (status, wanted["reason"], wanted["answer"]) == (0, "judge_malformed", "No JSON.")


def test_a_refusal_is_shown(run: Run, serve: Any) -> None:
    serve(lambda _: refusing())
    _, check, _ = checked(run, "--injections", 0)
    assert {one["answer"] for one in check["not_judged"]} == {"I cannot help with that."}


def test_a_check_without_an_example_for_its_judges_fails(run: Run, serve: Any) -> None:
    server = serve(honest, HELPFUL + "\n  safety_v1: {}", "- {label: true, criterion: safety_v1}")
    result = run(
        "judge", "check", "examples.yaml", "-c", "pathgauge.yaml", "--criterion", "helpful"
    )
    assert (result.exit_code, server.requests) == (1, [])
    assert result.stderr == (
        "pathgauge: no example was judged: none has a label for a criterion that was checked\n"
    )


def test_judges_that_repeat_themselves_cause_a_warning(run: Run, serve: Any) -> None:
    serve(honest, HELPFUL.replace("{scorer", "{samples: 2, scorer"))
    result = run("judge", "check", "examples.yaml", "-c", "pathgauge.yaml", "--injections", 0)
    assert result.exit_code == 0
    assert "several samples at temperature 0 repeat the same answer" in result.stderr


@pytest.mark.parametrize(
    ("judge", "options", "missed"),
    [
        (honest, ("--min-kappa", 0.6, "--max-flips", 0), []),
        (honest, ("--min-kappa", 0.62), ["helpful: kappa 0.615, expected 0.62 or more"]),
        (
            obeying,
            ("--max-flips", 0.01),
            ["helpful: flips by injections 0.55, expected 0.01 or less"],
        ),
        (
            fond_of_the_first,
            ("--max-flips", 0.3),
            ["helpful: flips by order 0.4, expected 0.3 or less"],
        ),
        (
            lambda _: failing(400),
            ("--min-kappa", -1),
            [NONE_JUDGED, "helpful: kappa not defined, expected -1 or more"],
        ),
        (
            lambda _: failing(400),
            ("--max-flips", 1),
            [
                NONE_JUDGED,
                "helpful: flips by order not defined, expected 1 or less",
                "helpful: flips by injections not defined, expected 1 or less",
            ],
        ),
        (honest, ("--max-flips", 0, "--injections", 0), []),
    ],
    ids=["good", "kappa", "injections", "order", "no kappa", "no flips", "no injections"],
)
def test_a_judge_that_misses_a_requirement_fails(
    run: Run, serve: Any, judge: Any, options: Any, missed: list[str]
) -> None:
    serve(judge)
    result = run(
        "judge", "check", "examples.yaml", "-c", "pathgauge.yaml", "--injections", 10, *options
    )

    assert (result.exit_code, result.stderr.splitlines()) == (
        1 if missed else 0,
        [f"pathgauge: {line}" for line in missed],
    )


def test_without_json_the_report_is_text(run: Run, serve: Any) -> None:
    serve(honest)
    result = run("judge", "check", "examples.yaml", "-c", "pathgauge.yaml", "--injections", 1)
    lines = result.stdout.splitlines()

    assert lines[0].startswith("helpful, judged by local:judge@")
    assert lines[1:] == [
        "  examples: 5, of which 5 judged",
        "  agreement: 0.8",
        "  kappa: 0.615",
        "  balanced accuracy: 0.833",
        "  precision: 0.667",
        "  recall: 1",
        "  f1: 0.8",
        "  flips by order: 0 of 5, median shift 0",
        "  flips by injections: 0 of 2, median shift 0",
        "  scores that contradict the label: 1",
        ('    odd: labelled false, score 1; the model\'s answer: {"reasoning":"","score":1.0}'),
        "12 requests, 1200 tokens in, 240 out, 0.0017 USD",
    ]


@pytest.mark.parametrize(
    ("examples", "mistakes"),
    [
        ("", ["examples.yaml: found an empty file, expected examples"]),
        ("[]", ["examples.yaml: found an empty file, expected examples"]),
        ("- {input: a}", ["examples.yaml:1:3: [0].label: found nothing, expected this key"]),
        (
            "- {label: maybe}",
            ["examples.yaml:1:11: [0].label: found 'maybe', expected true, false or a number"],
        ),
        (
            "- label: true\n  respons: b",
            [
                "examples.yaml:2:3: [0].respons: found an unknown key, expected one of input,"
                " expected_tools, expected_response, alternatives, forbidden_tools,"
                " response_contains, expected_agent, escalate, rubrics, id, before, response,"
                " tools, texts, tool_schemas, label, criterion; did you mean 'response'?"
            ],
        ),
        (
            "- {response: a, label: true}\n- {response: a, label: 0.5}",
            [
                "examples.yaml:2:24: [1].label: found 0.5, expected true or false, as in the first"
                " example"
            ],
        ),
        (
            "- {label: .nan}",
            ["examples.yaml:1:11: [0].label: found nan, expected true, false or a number"],
        ),
        (
            f"- {{label: 1{400 * '0'}}}",
            [
                f"examples.yaml:1:11: [0].label: found 1{59 * '0'}…, expected true, false or a"
                " number"
            ],
        ),
        (
            "- {response: a, label: 7}",
            [
                "examples.yaml:1:24: [0].label: found 7, expected a score that helpful can give,"
                " from 0 to 1"
            ],
        ),
        ("- {label: true, tools: [{arg: {}}]}", None),
        (
            "- {label: true, criterion: other}",
            ["examples.yaml:1:28: [0].criterion: found 'other', expected one of helpful"],
        ),
    ],
)
def test_problems_in_examples_are_reported_with_their_positions(
    run: Run, serve: Any, examples: str, mistakes: list[str] | None
) -> None:
    server = serve(honest, examples=examples)
    result = run("judge", "check", "examples.yaml", "-c", "pathgauge.yaml")

    assert (result.exit_code, result.stdout, server.requests) == (2, "", [])
    if mistakes is None:
        assert len(result.stderr.splitlines()) == 2
    else:
        assert result.stderr.splitlines() == [f"pathgauge: {line}" for line in mistakes]


@pytest.mark.parametrize(
    ("written", "options", "mistake"),
    [
        ("criteria: {latency: }\n", (), "judge: found no section, expected the model to ask"),
        (
            "",
            ("--criterion", "latency"),
            "--criterion: found 'latency', expected a criterion that asks a model: helpful",
        ),
        (
            "",
            ("--criterion", "helpfull"),
            (
                "--criterion: found 'helpfull', expected a criterion that asks a model: helpful;"
                " did you mean 'helpful'?"
            ),
        ),
    ],
)
def test_problems_in_the_configuration_are_reported(
    run: Run, serve: Any, written: str, options: Any, mistake: str
) -> None:
    serve(honest)
    if written:
        Path("pathgauge.yaml").write_text(written)
    result = run("judge", "check", "examples.yaml", "-c", "pathgauge.yaml", *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.strip().endswith(mistake)


def test_json_lines_have_examples_for_one_criterion_each(
    run: Run, serve: Any, folder: Path
) -> None:
    serve(honest, HELPFUL + "\n  safety_v1: {}")
    lines = [
        {"input": "a", "response": "4711", "label": True, "criterion": "helpful"},
        {"response": "b", "label": False, "criterion": "helpful"},
    ]
    (folder / "examples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, check, _ = checked(run, "--injections", 0, file="examples.jsonl")

    assert (check["criterion"], check["labelled"], check["agreement"]) == ("helpful", 2, 1.0)


@pytest.mark.parametrize(("threshold", "agreement"), [(0.5, 0.0), (1, 1.0)])
def test_a_score_passes_when_it_meets_the_threshold_of_the_criterion(
    run: Run, serve: Any, threshold: float, agreement: float
) -> None:
    criterion = (
        f"half: {{scorer: llm_judge, threshold: {threshold}, prompt: Good, choices: [0, 0.5, 1],"
        " inputs: [response]}"
    )
    serve(lambda _: answering(reasoning="", score=0.5), criterion, "- {response: a, label: false}")

    assert checked(run, "--injections", 0)[1]["agreement"] == agreement


@pytest.mark.parametrize(
    ("criterion", "written", "reason"),
    [
        ("trajectory_accuracy", "input: a, response: b", "tools_not_recorded"),
        ("final_response_match_v2", "input: a, response: b", "no_reference"),
        ("safety_v1", "input: a", "response_not_recorded"),
    ],
)
def test_an_example_without_the_needed_data_is_not_judged(
    run: Run, serve: Any, criterion: str, written: str, reason: str
) -> None:
    server = serve(
        honest,
        f"{criterion}: {{}}\n  safety: {{scorer: safety_v1}}",
        f"- {{{written}, label: true}}",
    )
    _, check, _ = checked(run, "--injections", 0, "--criterion", criterion)

    assert (check["criterion"], check["unanswered"], server.requests) == (
        criterion,
        {reason: 1},
        [],
    )


WITH_EXAMPLES: dict[str, tuple[Any, Any]] = {
    "failure_category": ("none", "wrong_tool"),
    "intent_resolution": (5, 1),
    "multi_turn_task_success_v1": (True, False),
    "multi_turn_tool_use_quality_v1": (True, False),
    "multi_turn_trajectory_quality_v1": (True, False),
    "pairwise": ("tie", "second"),
    "plan_adherence": ("followed", "deviated"),
    "refusal": ("answered", "refused"),
    "task_adherence": ("adherent", "not_adherent"),
    "tool_output_utilization": ("used", "misused"),
}
"""The judges that come with examples, and their answers to good and to bad ones."""
LABELLED = Path(pathgauge.scorers.judges.__path__[0]) / "labelled"


def key_of(response: str, calls: Iterable[tuple[str, Any]]) -> str:
    return json.dumps([response, *calls])


def answer_of(name: str, *, good: bool) -> Reply:
    if name.startswith("multi_turn"):
        return answering(findings=[{"statement": "It is good.", "reasoning": "", "holds": good}])
    member = "score" if name == "intent_resolution" else "verdict"
    return answering(**{"reasoning": "", member: WITH_EXAMPLES[name][not good]})


def knowing_labels(name: str) -> Callable[[JudgeRequest], Reply]:
    """A model that answers as the examples of a judge are labelled."""
    if name.startswith("multi_turn"):
        return knowing_sessions(name)
    labels: dict[str, bool] = {}
    for one in yaml.safe_load((LABELLED / f"{name}.yaml").read_text()):
        calls = [(call["name"], call["args"]) for call in one.get("tools", ())]
        labels[key_of(one["response"], calls)] = one["label"]
        labels.setdefault(key_of(one["response"], ()), one["label"])

    def label(member: str, request: JudgeRequest) -> bool | None:
        calls = request.data.get("trajectory") or ()
        asked = [(call["tool"], call["arguments"]) for call in calls]
        return labels.get(key_of(request.data[member], asked))

    def reply(request: JudgeRequest) -> Reply:
        known = label("first" if name == "pairwise" else "response", request)
        if known is not None:
            return answer_of(name, good=known)
        # The answer of the reference is the first.
        return answering(reasoning="", verdict="tie" if label("second", request) else "first")

    return reply


def knowing_sessions(name: str) -> Callable[[JudgeRequest], Reply]:
    """A model that knows the examples of a judge of sessions by all that is said in them."""
    labels: dict[str, bool] = {}
    for one in yaml.safe_load((LABELLED / f"{name}.yaml").read_text()):
        turns = [(turn["input"], turn["response"]) for turn in (*one["before"], one)]
        labels[json.dumps(turns)] = one["label"]
    assert {True, False} == {*labels.values()}

    def reply(request: JudgeRequest) -> Reply:
        turns = [(turn["user"], turn["agent"]) for turn in request.data["turns"]]
        return answer_of(name, good=labels[json.dumps(turns)])

    return reply


def checked_with_its_own(run: Run, *options: object) -> tuple[int, dict[str, Any]]:
    result = run("judge", "check", "-c", "pathgauge.yaml", "--json", "--injections", 0, *options)
    (check,) = json.loads(result.stdout)["checks"]
    return result.exit_code, check


@pytest.mark.parametrize("name", thinned(WITH_EXAMPLES, 4))
def test_without_a_file_a_judge_is_checked_with_the_examples_that_come_with_it(
    name: str, run: Run, serve: Any
) -> None:
    serve(knowing_labels(name), f"{name}:")
    status, check = checked_with_its_own(run, "--min-kappa", 1)
    assert (status, check["criterion"], check["unanswered"], check["kappa"]) == (0, name, {}, 1.0)
    assert check["labelled"] == check["answered"] >= 10


@pytest.mark.parametrize("name", thinned(WITH_EXAMPLES, 4))
def test_a_judge_that_always_answers_the_same_does_not_agree_with_its_examples(
    name: str, run: Run, serve: Any
) -> None:
    serve(lambda _: answer_of(name, good=True), f"{name}:")
    status, check = checked_with_its_own(run, "--min-kappa", 0.5)
    assert (status, check["kappa"]) == (1, 0.0)


def test_without_a_file_judges_of_ones_own_are_not_checked(run: Run, serve: Any) -> None:
    serve(honest)
    result = run("judge", "check", "-c", "pathgauge.yaml")
    assert result.exit_code == 2
    assert result.stderr == (
        "pathgauge: EXAMPLES: found none, expected a file: no labelled examples come with helpful\n"
    )


def test_every_set_of_examples_belongs_to_a_judge() -> None:
    assert {file.stem for file in LABELLED.iterdir()} == WITH_EXAMPLES.keys()


def test_the_answers_of_people_are_labels(run: Run, serve: Any, folder: Path) -> None:
    serve(lambda request: answering(reasoning="", score=1.0))
    with opened(folder / "pathgauge-data", EvidencePolicy("all")) as store:
        for name in "abc":
            commit(store, [evaluation(name, "passed")], time.time())
        said = [answer("a", "up"), answer("b", "down"), answer("c", "down", name="helpful")]
        commit(store, [*given(*said), *given(answer("c", "up"), answer("unknown"))], time.time())
    found = run("judge", "check", "--feedback", "-c", "pathgauge.yaml", "--json")
    (check,) = json.loads(found.stdout)["checks"]
    assert (check["labelled"], check["answered"]) == (3, 3)
    assert check["agreement"] == pytest.approx(1 / 3)


def test_an_answer_about_a_session_is_about_no_run(run: Run, serve: Any, folder: Path) -> None:
    serve(lambda request: answering(reasoning="", score=1.0))
    whole, now = session("b", "talk", at=time.time()), time.time()
    _, trace_id, span_id = whole.key
    clicked = replace(answer("x", "down"), trace_id=trace_id, span_id=span_id)
    with opened(folder / "pathgauge-data", EvidencePolicy("all")) as store:
        commit(store, [evaluation("a", "passed"), whole], now)
        said = answer("a", "up"), about_talk("talk", "down", at=now, rater="ann"), clicked
        commit(store, given(*said), now)
    found = run("judge", "check", "--feedback", "-c", "pathgauge.yaml", "--json")
    (check,) = json.loads(found.stdout)["checks"]
    assert (check["labelled"], check["agreement"]) == (1, 1.0)


def test_answers_about_runs_are_no_labels_for_judges_of_sessions(
    run: Run, serve: Any, folder: Path
) -> None:
    """Such a judge would be shown a single turn, and blamed for what people say about that turn."""
    serve(lambda request: answering(reasoning="", score=1.0), f"{HELPFUL}\n  {OF_SESSIONS}:")
    with opened(folder / "pathgauge-data", EvidencePolicy("all")) as store:
        commit(store, [evaluation("a", "passed"), evaluation("b", "passed")], time.time())
        said = answer("a", "up"), answer("b", "down", name=OF_SESSIONS)
        commit(store, given(*said), time.time())
    found = run("judge", "check", "--feedback", "-c", "pathgauge.yaml", "--json")
    (check,) = json.loads(found.stdout)["checks"]
    assert (check["criterion"], check["labelled"]) == ("helpful", 1)


@pytest.mark.parametrize("options", [(), ("--criterion", OF_SESSIONS)])
def test_judges_of_sessions_alone_cannot_be_compared_with_people(
    options: tuple[str, ...], run: Run, serve: Any
) -> None:
    serve(honest, f"{OF_SESSIONS}:" if not options else f"{HELPFUL}\n  {OF_SESSIONS}:")
    found = run("judge", "check", "--feedback", "-c", "pathgauge.yaml", *options)
    assert found.exit_code == 2
    assert found.stderr == (
        f"pathgauge: --feedback: found no judge of single invocations, only of sessions:"
        f" {OF_SESSIONS}; expected one: the evidence of an answered session has no turns\n"
    )


def test_without_any_answer_there_is_nothing_to_check(run: Run, serve: Any, folder: Path) -> None:
    serve(honest)
    with opened(folder / "pathgauge-data") as store:
        commit(store, [evaluation("a")], time.time())
    found = run("judge", "check", "--feedback", "-c", "pathgauge.yaml")
    assert found.exit_code == 2
    assert "--feedback: found no invocation with an answer of people" in " ".join(
        found.stderr.split()
    )


def test_labels_come_from_one_place(run: Run, serve: Any) -> None:
    serve(honest)
    found = run("judge", "check", "examples.yaml", "--feedback", "-c", "pathgauge.yaml")
    assert found.exit_code == 2
    assert "either a file of examples or --feedback" in " ".join(found.stderr.split())
