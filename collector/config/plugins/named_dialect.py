"""Lets the errors of other packages' dialects name the dialect and the function.

A function that raises, or returns a value of a wrong type, makes its trace unreadable. Without the
name, only a traceback would tell whose function it was; a wrong type would even pass, and fail far
from its cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import NoneType
from typing import Any, TypeAlias

from pathgauge.collector.config.plugins.registry import OWN_PACKAGE, PluginError
from pathgauge.collector.core.invocations.dialects import Dialect, Fields
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, FieldPath
from pathgauge.collector.core.reading_budget import TooSlowError

_RETURNED: Mapping[str, tuple[type, ...]] = {
    "matches": (object,),
    "kind": (str, NoneType),
    "adds_up_usage": (object,),
    "may_be_entry": (object,),
    "name_of": (str, NoneType),
    "function_name": (str,),
    "messages": (tuple,),
    "unwrap_arguments": (object,),
    "unwrap_result": (tuple,),
    "failure": (str, NoneType),
    "copied_error": (object,),
    "written_call": (tuple,),
    "empty_means_not_captured": (tuple,),
}
"""The functions of a dialect, and what each may return; `object` is anything."""

_Function: TypeAlias = Callable[..., Any]


class DialectError(PluginError):
    """A function of a dialect raised, or returned a value of a wrong type. The message names both,
    and quotes no telemetry but that in the message of the cause.
    """

    def __init__(self, dialect: str, function: str, problem: str) -> None:
        super().__init__(dialect, function, problem)
        self.dialect = dialect
        self.function = function
        self._problem = problem

    def __str__(self) -> str:
        return f"the dialect {self.dialect}: {self.function} {self._problem}"


def named(dialect: Dialect) -> Dialect:
    """The same dialect, with functions that raise `DialectError`; one of ours is unchanged.

    Raises `PluginError` if it is asked for no span.
    """
    if not (dialect.scopes or dialect.names or dialect.key_prefixes):
        text = "found no scopes, names and key_prefixes, expected one of them: it would see no span"
        raise PluginError(f"the dialect {dialect.name}: {text}")
    functions: dict[str, Any] = {
        name: _named(dialect.name, name, function, returned)
        for name, returned in _RETURNED.items()
        if (function := getattr(dialect, name)) is not None and not _is_own(function)
    }
    return replace(dialect, fields=_named_fields(dialect), **functions) if functions else dialect


def _named_fields(dialect: Dialect) -> Fields:
    if dialect.empty_means_not_captured is not None:
        return dialect.fields  # the function returns field paths, which are compared with these
    return Fields(
        **{
            one.name: tuple(
                _named_path(dialect, one.name, path) for path in getattr(dialect.fields, one.name)
            )
            for one in fields(Fields)
        }
    )


def _named_path(dialect: Dialect, field: str, path: FieldPath) -> FieldPath:
    if not isinstance(path, Derived):
        return path
    return replace(path, derive=_named(dialect.name, field, path.derive, (object,)))


def _is_own(function: _Function) -> bool:
    return str(getattr(function, "__module__", "")).startswith(f"{OWN_PACKAGE}.")


def _named(dialect: str, name: str, function: _Function, returned: tuple[type, ...]) -> _Function:
    def call(*arguments: Any) -> Any:
        try:
            found = function(*arguments)
        except (KeyboardInterrupt, TooSlowError):
            raise
        except BaseException as error:  # third-party code may raise anything
            problem = f"raised {type(error).__name__}: {error}"
            raise DialectError(dialect, name, problem) from error
        if not isinstance(found, returned):
            expected = " or ".join(_name(kind) for kind in returned)
            problem = f"returned {type(found).__name__}, expected {expected}"
            raise DialectError(dialect, name, problem)
        return found

    return call


def _name(kind: type) -> str:
    return "None" if kind is NoneType else kind.__name__
