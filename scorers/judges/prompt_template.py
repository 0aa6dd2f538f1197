"""Parses user-defined prompts with variables.

A variable is replaced by the *name* of a member of the data, never by its content. Text of an agent
never becomes part of the instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pathgauge.scorers.judges.prompt_members import JUDGED, legend, member_name

DEFAULT_INPUTS = ("user_input", "trajectory", "response")
"""The data for a prompt without inputs and variables."""

_VARIABLE = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Template:
    """Instructions and the names of the members they mention, in order."""

    text: str
    members: tuple[str, ...]

    @property
    def instructions(self) -> str:
        """The text, followed by a description of the members."""
        return f"{self.text}\n\n{legend(self.members)}"


def template(prompt: str, inputs: Iterable[str] = ()) -> Template:
    """Parse a prompt.

    `{response}` is a variable, `{{response}}` the literal word in braces; other braces stay. The
    members are the `inputs` and the variables, else `DEFAULT_INPUTS`. Raises `ValueError` for an
    unknown variable, and for a prompt without any judged member.
    """
    if not prompt.strip():
        raise ValueError("prompt: found no text, expected what to judge")
    members = list(_known("inputs", inputs))

    def replacement(variable: re.Match[str]) -> str:
        literal, name = variable.groups()
        if literal is not None:
            return f"{{{literal}}}"
        try:
            members.append(member_name(name))
        except ValueError as error:
            raise ValueError(f"prompt: {error}; {{{{{name}}}}} is the word in braces") from None
        return f"`{members[-1]}`"

    text = _VARIABLE.sub(replacement, prompt.strip())
    return Template(text, checked_members(members or DEFAULT_INPUTS))


def checked_members(names: Iterable[str]) -> tuple[str, ...]:
    """The names without duplicates. Raises `ValueError` if none of them is a judged member."""
    members = tuple(dict.fromkeys(names))
    if JUDGED.isdisjoint(members):
        raise ValueError(
            f"prompt: found {', '.join(members)}, expected response or trajectory among them;"
            " else there is nothing to judge"
        )
    return members


def _known(option: str, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        try:
            yield member_name(name)
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from None
