"""Asks a person about each proposal of `pathgauge curate`: accept, edit or skip it."""

from __future__ import annotations

import os
import shlex
import subprocess
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
    """The text as a person leaves it in the editor of `VISUAL` or `EDITOR`. Raises OSError."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proposal.yaml"
        file.write_text(text, encoding="utf-8")
        subprocess.run([*shlex.split(command), str(file)], check=False)
        return file.read_text(encoding="utf-8", errors="replace")


def reviewed(proposals: Iterable[Proposal], show: Callable[[Proposal], None]) -> Iterator[str]:
    """The accepted proposals as YAML documents."""
    from pathgauge.collector.core.curation.written import document

    for proposal in proposals:
        show(proposal)
        text = document(proposal)
        answer = _answer()
        while answer == "e":
            text = in_editor(text)
            problems = _problems(text)
            print_messages(problems)
            answer = "e" if problems and typer.confirm("Edit again?", err=True) else _answer()
        if answer == "q":
            return
        if answer == "a" and not _problems(text):
            yield text


def _answer() -> str:
    while True:
        answer: str = typer.prompt(_QUESTION, err=True).strip().lower()[:1]
        if answer in {"a", "e", "s", "q"}:
            return answer


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
