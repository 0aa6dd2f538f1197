"""Commands about references: they are brought from other formats, to other formats, and out of good
traces.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from pathgauge.collector import config as configuration
from pathgauge.collector.cli.shared import (
    ConfigFile,
    Files,
    Output,
    ReferenceFiles,
    ReferenceFormat,
    note,
    operator_errors,
    write,
)


def import_(
    format: Annotated[
        ReferenceFormat,
        typer.Argument(help="The format of the files; `auto` tells it from the content."),
    ],
    files: ReferenceFiles,
    output: Output = None,
    scenario_prefix: Annotated[str, typer.Option(help="Put before every scenario id.")] = "",
) -> None:
    """Write references of another format in the native one, and say on standard error what was
    found and what was ignored.

    Formats: ADK evalsets, datasets of Vertex AI, LangGraph trajectories, and chat messages of
    OpenAI and LangChain.

    Example: `pathgauge import auto eval_dataset.jsonl --output references/home.yaml`
    """
    from pathgauge.collector.config.reference_files import read_all
    from pathgauge.collector.core.references.export_native import to_yaml
    from pathgauge.collector.core.references.importing import gather

    with operator_errors():
        imported = gather(read_all(files, None if format == "auto" else format), scenario_prefix)
        write(to_yaml(imported.references), output)
    note(imported.summary)


def export(
    files: ReferenceFiles,
    format: Annotated[
        Literal["adk"], typer.Option(help="The format to write: an ADK evalset.")
    ] = "adk",
    output: Output = None,
    lossy: Annotated[
        bool,
        typer.Option(
            "--lossy", help="Leave out what the format cannot say, instead of refusing it."
        ),
    ] = False,
) -> None:
    """Write references of any format as an evalset for google-adk.

    Example: `pathgauge export references/home.yaml --output home.evalset.json`
    """
    from pathgauge.collector.config.reference_files import read_all
    from pathgauge.collector.core.references.export_adk import evalset, to_json

    with operator_errors():
        entries = [entry for read in read_all(files).values() for entry in read.entries]
        exported = evalset(
            (entry.reference for entry in entries), (output or files[0]).name.split(".")[0]
        )
        note(exported.left_out)
        if exported.left_out and not lossy:
            note(["nothing was written; --lossy leaves out what ADK cannot express"])
            raise typer.Exit(2)
        write(to_json(exported.data), output)


def record(
    files: Files,
    config: ConfigFile = None,
    scenario: Annotated[
        str | None, typer.Option(help="The scenario id of all invocations, instead of their own.")
    ] = None,
    output: Output = None,
    without_arguments: Annotated[
        bool, typer.Option("--without-arguments", help="Expect calls with any arguments.")
    ] = False,
    without_response: Annotated[
        bool, typer.Option("--without-response", help="Expect no particular response.")
    ] = False,
    allow_failed: Annotated[
        bool, typer.Option("--allow-failed", help="Record failed invocations too.")
    ] = False,
    alternatives: Annotated[
        bool,
        typer.Option(
            "--alternatives",
            help="Keep other trajectories of a scenario as alternatives to its first.",
        ),
    ] = False,
) -> None:
    """Make references of good traces: what the agent did in them becomes what is expected of it.

    Invocations with a scenario id are recorded, those of one conversation as its turns.

    Example: `pathgauge record traces.json --output references/refund.yaml`
    """
    from pathgauge.collector.core.evaluations.evaluator import Evaluator
    from pathgauge.collector.core.references import ReferenceSet
    from pathgauge.collector.core.references.export_native import to_yaml
    from pathgauge.collector.offline.record import Wanted, record
    from pathgauge.collector.offline.replay import replay

    with operator_errors():
        replayed = list(
            replay(files, Evaluator(()), ReferenceSet(), configuration.load(config).scenario.keys)
        )
        for one in replayed:
            note(one.notes)
        recording = record(
            replayed,
            Wanted(
                scenario, not without_arguments, not without_response, allow_failed, alternatives
            ),
        )
        write(to_yaml(recording.references), output)
    note(recording.notes)
