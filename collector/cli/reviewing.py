"""Asks a person about each proposal of `pathgauge curate`: accept, edit or skip it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pathgauge.collector.cli.console import print_messages

if TYPE_CHECKING:
    from pathgauge.collector.core.curation.proposal import Proposal

_QUESTION = "[a]ccept, [e]dit, [s]kip or [q]uit?"


def in_editor(text: str) -> str:
    """The text as a person leaves it in the editor of `VISUAL` or `EDITOR`. Without an editor, it
    stays as it is.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proposal.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*shlex.split(command), str(file)], check=False)
        except (OSError, ValueError) as error:  # ValueError: a quote that is not closed
            print_messages([f"the editor {command!r} cannot be started: {error}; set VISUAL"])
        return file.read_text(encoding="utf-8", errors="replace")


def reviewed(proposals: Iterable[Proposal], show: Callable[[Proposal], None]) -> Iterator[str]:
    """The accepted proposals as YAML documents. Raises `typer.Exit` when there are no answers, and
    `KeyboardInterrupt`.
    """
    from pathgauge.collector.core.curation.written import document

    for proposal in proposals:
        show(proposal)
        text = document(proposal)
        answer = _answer()
        while answer == "e":
            text = in_editor(text)
            problems = _problems(text)
            print_messages(problems)
            answer = "e" if problems and _ask("Edit again? [y]es or [n]o") == "y" else _answer()
        if answer == "q":
            return
        if answer == "a" and not _problems(text):
            yield text


def _answer() -> str:
    while True:
        answer = _ask(_QUESTION)
        if answer in {"a", "e", "s", "q"}:
            return answer


def _ask(question: str) -> str:
    """The first letter of the answer. typer's prompt writes a blank to standard output, which is
    the result. ^D quits, but a pipe that ends has too few answers.
    """
    typer.echo(f"{question}: ", nl=False, err=True)
    line = sys.stdin.readline()
    if line:
        return line.strip().lower()[:1]
    typer.echo(err=True)
    if sys.stdin.isatty():
        return "q"
    print_messages(["found no further answer on standard input, expected --yes or --json"])
    raise typer.Exit(2)


def _problems(text: str) -> list[str]:
    """Why a text is no reference file."""
    from pathgauge.collector.core.documents import ConfigError, yaml_source
    from pathgauge.collector.core.references import native

    try:
        documents = yaml_source.read(text, "the edited proposal", None)
        found = [one for one in documents if one.data is not None and native.load(one).references]
    except ConfigError as error:
        return str(error).splitlines()
    return [] if found else ["the edited proposal: found no reference, expected one"]
