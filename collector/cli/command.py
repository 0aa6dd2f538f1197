"""What all commands have in common.

They say what to do with an argument that they do not take. The usual one is a configuration without
`--config`, as in `pathgauge serve pathgauge.yaml`.

They end with status 2 when their output cannot be written. An exception that nobody catches would
end them with status 1, which means that a gate did not pass.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from pathgauge.collector.cli.errors import operator_errors

_CONFIGURATIONS = (".yaml", ".yml", ".json")


class Command(TyperCommand):
    """A command of the command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; ends the program if there are more of them than the command takes.

        typer keeps the class of `ctx` to itself.
        """
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            ctx.fail(f"found the argument {rest[0]!r}, expected none{self._hint(rest[0])}")
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with operator_errors():
            return super().invoke(ctx)

    def _hint(self, argument: str) -> str:
        has_config = any(parameter.name == "config" for parameter in self.params)
        if not has_config or not argument.lower().endswith(_CONFIGURATIONS):
            return ""
        return f"; did you mean --config {argument}?"
