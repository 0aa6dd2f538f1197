"""Commands about references: convert them from and to other formats, or record them from traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pathgauge.collector.cli.console import print_messages, refuse_to_replace, write_result
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import (
    CaFile,
    ConfigFile,
    Output,
    ReferenceFiles,
    TokenFile,
    TraceTenant,
    Url,
    existing,
)


def import_(
    format: Annotated[
        str,
        typer.Argument(
            help="Format of the files: adk, graph, messages, pathgauge, vertex, or that of a"
            " plug-in; `auto` detects it."
        ),
    ],
    files: ReferenceFiles,
    output: Output = None,
    scenario_prefix: Annotated[
        str, typer.Option(help="Text to put in front of every scenario id.")
    ] = "",
) -> None:
    """Convert references to the native format.

    Use it to edit references that you have in another format: ADK evalsets, Vertex AI datasets,
    LangGraph trajectories, or chat messages of OpenAI and LangChain. Standard error lists what was
    found and what was ignored.

    Example: `pathgauge import auto eval_dataset.jsonl --output references/home.yaml`
    """
    from pathgauge.collector.config.reference_files import read_all
    from pathgauge.collector.core.references.export_native import to_yaml
    from pathgauge.collector.core.references.importing import gather

    with operator_errors():
        imported = gather(read_all(files, None if format == "auto" else format), scenario_prefix)
        write_result(to_yaml(imported.references), output)
    print_messages(imported.summary)


def export(
    files: ReferenceFiles,
    format: Annotated[
        Literal["adk"], typer.Option(help="The format to write: an ADK evalset.")
    ] = "adk",
    output: Output = None,
    lossy: Annotated[
        bool,
        typer.Option(
            "--lossy", help="Drop what the format cannot express instead of writing nothing."
        ),
    ] = False,
) -> None:
    """Convert references to an ADK evalset.

    Use it to run references of any format with google-adk. Standard error lists what ADK cannot
    express. If there is anything, nothing is written and the exit status is 2, unless --lossy is
    given.

    Example: `pathgauge export references/home.yaml --output home.evalset.json`
    """
    from pathgauge.collector.config.reference_files import read_all
    from pathgauge.collector.core.references.export_adk import evalset, to_json

    with operator_errors():
        entries = [entry for read in read_all(files).values() for entry in read.entries]
        name = (output or files[0]).name.split(".")[0]
        exported = evalset((entry.reference for entry in entries), name)
        print_messages(exported.left_out)
        if exported.left_out and not lossy:
            print_messages(["nothing was written; --lossy leaves out what ADK cannot express"])
            raise typer.Exit(2)
        write_result(to_json(exported.data), output)


def record(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Trace files, or directories of trace files, as of `pathgauge score`.",
            callback=existing,
        ),
    ] = None,
    config: ConfigFile = None,
    from_store: Annotated[
        list[str] | None,
        typer.Option(
            "--from-store",
            metavar="TRACE",
            help="Record this trace of the collector's store instead of files. Can be repeated.",
        ),
    ] = None,
    tenant: TraceTenant = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    scenario: Annotated[
        str | None,
        typer.Option(help="Scenario id of all invocations, instead of the one in their spans."),
    ] = None,
    output: Output = None,
    without_arguments: Annotated[
        bool, typer.Option("--without-arguments", help="Accept any arguments in expected calls.")
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
            help="Keep further trajectories of a scenario as alternatives to the first.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the output file if it exists.")
    ] = False,
) -> None:
    """Create references from good traces.

    Use it when an agent does what it should: its tool calls and responses become the expected
    ones. Invocations need a scenario id, or give all of them one with --scenario. Invocations of
    one conversation become the turns of one reference.

    Traces are those of files, or with --from-store those that the collector of the configuration
    has received.

    Example: `pathgauge record traces.json --output references/refund.yaml`
    """
    from pathgauge.collector import config as configuration
    from pathgauge.collector.cli.result_sources.source import source_of
    from pathgauge.collector.cli.result_sources.traces import read_traces
    from pathgauge.collector.core.evaluations.evaluator import Evaluator
    from pathgauge.collector.core.references import ReferenceSet
    from pathgauge.collector.core.references.export_native import to_yaml
    from pathgauge.collector.offline.record import RecordOptions, record
    from pathgauge.collector.offline.replay import replay, replay_files

    if bool(files) == bool(from_store) or (url is not None and not from_store):
        raise typer.BadParameter("give either files, or --from-store with or without --url")
    if scenario == "":  # such as of a variable that is not set
        raise typer.BadParameter("--scenario: found '', expected a scenario id")
    options = RecordOptions(
        scenario,
        arguments=not without_arguments,
        response=not without_response,
        failed=allow_failed,
        alternatives=alternatives,
    )
    with operator_errors():
        refuse_to_replace(output, force)
        keys = configuration.load(config, with_scorers=False).scenario.keys
        replayed = list(replay(files or (), Evaluator(()), ReferenceSet(), keys))
        if from_store:
            source = source_of(config, url, token_file, ca_file)
            replayed += [
                replay_files(traces, path, Evaluator(()), ReferenceSet(), keys)
                for path, traces in read_traces(source, from_store, tenant)
            ]
        for one in replayed:
            print_messages(one.notes)
        recording = record(replayed, options, of_one_store=bool(from_store))
        write_result(to_yaml(recording.references), output)
    print_messages(recording.notes)
