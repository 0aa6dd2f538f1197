"""Prompts of people: the text with its variables comes in, instructions and the members of the data
to show go out.

A variable is replaced by the *name* of its member. What an agent wrote never becomes a part of the
instructions: it travels beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pathgauge.scorers.judges.prompt_members import JUDGED, legend, member_name

DEFAULT_INPUTS = ("user_input", "trajectory", "response")
"""What a prompt shows that does not say what to show."""

_VARIABLE = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Template:
    """Instructions, and the names of the members that they speak of, in order."""

    text: str
    members: tuple[str, ...]

    @property
    def instructions(self) -> str:
        """The text, with what the members are."""
        return f"{self.text}\n\n{legend(self.members)}"


def template(prompt: str, inputs: Iterable[str] = ()) -> Template:
    """Read a prompt. `{response}` is a variable, `{{response}}` is the word in braces, and all
    other braces stay as they are.

    What it shows are the `inputs` and the variables of the prompt; without any of them
    `DEFAULT_INPUTS`. Raises `ValueError` for an unknown variable, and for a prompt that shows
    nothing to judge.
    """
    if not prompt.strip():
        raise ValueError("prompt: found no text, expected what to judge")
    members = list(_known("inputs", inputs))

    def name_of(variable: re.Match[str]) -> str:
        literal, name = variable.groups()
        if literal is not None:
            return f"{{{literal}}}"
        try:
            members.append(member_name(name))
        except ValueError as error:
            raise ValueError(f"prompt: {error}; {{{{{name}}}}} is the word in braces") from None
        return f"`{members[-1]}`"

    text = _VARIABLE.sub(name_of, prompt.strip())
    return Template(text, checked_members(members or DEFAULT_INPUTS))


def checked_members(names: Iterable[str], option: str = "prompt") -> tuple[str, ...]:
    """The names, each once. Raises `ValueError` when none is something that an agent made."""
    members = tuple(dict.fromkeys(names))
    if JUDGED.isdisjoint(members):
        raise ValueError(
            f"{option}: found {', '.join(members)}, expected response or trajectory among them;"
            " else there is nothing to judge"
        )
    return members


def _known(option: str, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        try:
            yield member_name(name)
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from None
