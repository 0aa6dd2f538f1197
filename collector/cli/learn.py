"""`pathgauge learn`: proposes a dialect for telemetry that no dialect understands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.errors import operator_errors
from pathgauge.collector.cli.options import ConfigFile, Files

if TYPE_CHECKING:
    from pathgauge.collector.core.invocations.dialects import Registry
    from pathgauge.collector.core.otlp.spans import Span


def learn(
    files: Files,
    config: ConfigFile = None,
    content: Annotated[
        bool,
        typer.Option("--content", help="Show an example of each value, not only its shape."),
    ] = False,
) -> None:
    """Propose a dialect for an in-house framework.

    Use it when `pathgauge invocations` names scopes that no dialect understands. Prints the section
    `dialects` for the configuration as YAML, with the evidence for each field as comments, and what
    was not found. Check it, and complete it by hand.

    Example: `pathgauge learn traces.json > dialects.yaml`
    """
    from pathgauge.collector import config as configuration
    from pathgauge.collector.config.dialect_tables import dialects_of
    from pathgauge.collector.config.plugins.dialects import installed_dialects
    from pathgauge.collector.offline.learning import as_yaml, learn as learned_from
    from pathgauge.collector.offline.trace_files import read_path

    with operator_errors():
        registry = installed_dialects(dialects_of(configuration.load(config).dialects))
        spans = [span for path in files for span in read_path(path).spans]
        found = learned_from(spans, registry)
        if not found:
            print_messages([_nothing(spans, registry)])
            return
        typer.echo(as_yaml(found, content=content), nl=False)


def _nothing(spans: Sequence[Span], registry: Registry) -> str:
    """Why nothing is proposed: a dialect reads the spans, or their names say nothing of agents."""
    from pathgauge.scorers.matching.wording import counted

    others = sum(not registry.classify(span)[1] for span in spans)
    text = (
        f"nothing to propose: dialects read {len(spans) - others} of {counted(len(spans), 'span')}"
    )
    if others == 0:
        return text
    return f"{text}; the names in the others do not show that they are about agents"
