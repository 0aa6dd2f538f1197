"""The verdict on a release, as text."""

from __future__ import annotations

from rich.console import Console

from pathgauge.collector.api.release_models import MetricVerdict, ReleaseVerdict
from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.output.listing import Entry, Heading, Listing
from pathgauge.collector.cli.output.numbers import number, verdict_text
from pathgauge.collector.cli.output.printing import print_text

_HEADINGS = (
    Heading("metric"),
    Heading("verdict"),
    Heading("difference", right=True),
    Heading("interval"),
    Heading("version", right=True),
    Heading("against", right=True),
    Heading("pairs", right=True),
    Heading("why"),
)
_STYLES = {"worse": "red", "better": "green", "not_worse": "green", "undecided": "yellow"}
_REASONS = {
    "no_scores": "neither version has a score",
    "no_scores_of_version": "the version has no score",
    "no_scores_of_baseline": "the other version has no score",
    "no_shared_scenario": "no scenario has scores of both versions, measured in the same way",
    "too_few_pairs": "too few pairs for this difference",
    "no_results_of_version": "no result of the version fits the options",
    "no_results_of_baseline": "no result of the other version fits the options",
    "not_all_read": "among the results that were read in time, one version has none",
    "no_metric": "no criterion is active",
}
_NOT_IN_SHADOW = "no result that fits the options has scores in shadow"


def print_release(found: ReleaseVerdict, out: Console, *, shadow: bool = False) -> None:
    """Print the verdict and a row for each metric; why nothing was compared is a message. `shadow`:
    no versions were compared.
    """
    text = f"{found.agent} {found.version} against {found.against}: {verdict_text(found.verdict)}"
    print_text(out, text, style=_STYLES[found.verdict])
    if found.reason is not None:
        print_messages([_NOT_IN_SHADOW if shadow else _REASONS[found.reason]])
    Listing(_HEADINGS, "text", out).print(map(_entry, found.metrics))
    if not found.complete:
        text = "there was no time to read all results, so only the newest of each scenario were"
        print_messages([f"{text} compared; --since and --scenario read fewer"])


def _entry(one: MetricVerdict) -> Entry:
    has_pairs = one.difference is not None
    cells = (
        one.metric,
        verdict_text(one.verdict),
        _shown(one.difference),
        f"{number(one.low)} to {number(one.high)}" if has_pairs else "",
        _shown(one.version_mean),
        _shown(one.against_mean),
        one.pairs,
        "" if one.reason is None else _REASONS[one.reason],
    )
    return Entry(cells, one, _STYLES[one.verdict])


def _shown(value: float | None) -> str:
    return "" if value is None else number(value)
