"""Commands of pathgauge that a page prints exist, and have the options that the page gives them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from pathgauge.collector.cli import app
from support.repository import ROOT

WITHOUT = {
    "CHANGELOG.md": "names what other versions had",
    "docs/adding-a-command.md": "adds a command",
    "docs/cli.md": "is compared as a whole",
    "docs/upgrading.md": "names what other versions had",
}
PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md"))
    if str(page.relative_to(ROOT)) not in WITHOUT
]
BLOCK = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^\s*(?:\$ )?(?:\S*/)?(pathgauge [^:].*)", re.MULTILINE)
IN_TEXT = re.compile(r"`(pathgauge [a-z][^`]*)`")
END = re.compile(r"\s+[|#>&]|;|\s2>")
COMMANDS = typer.main.get_command(app)


def printed(text: str) -> Iterator[str]:
    """The commands of a page, each without what follows it on its line."""
    for block in BLOCK.findall(text):
        for line in LINE.findall(block.replace("\\\n", " ")):
            yield END.split(line)[0]
    for found in IN_TEXT.findall(BLOCK.sub("", text)):
        yield found.replace("\n", " ")


def unknown(line: str) -> Iterator[str]:
    """The command, if there is none of this name, or its options that it does not have."""
    command, words = COMMANDS, shlex.split(line)[1:]
    while words and words[0] in (known := getattr(command, "commands", {})):
        command = known[words.pop(0)]
    if command is COMMANDS:
        yield from words
        return
    options = {"--help"}
    for parameter in command.params:
        options.update(parameter.opts, parameter.secondary_opts)
    for word in words:
        if re.match("--?[a-z]", word) and word.split("=")[0] not in options:
            yield word


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_printed_commands_exist_and_have_their_options(page: Path) -> None:
    found = {line: list(unknown(line)) for line in printed(page.read_text())}
    assert {line: words for line, words in found.items() if words} == {}


def test_a_command_that_does_not_exist_is_found() -> None:
    page = "`pathgauge scor x`\n```\n$ pathgauge score t/ --no-such 1 | jq --raw .\n```\n"
    lines = list(printed(page))
    assert [(line, list(unknown(line))) for line in lines] == [
        ("pathgauge score t/ --no-such 1", ["--no-such"]),
        ("pathgauge scor x", ["scor", "x"]),
    ]
