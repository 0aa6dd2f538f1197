"""The installed plug-ins of one kind, found by the entry points of one group.

A plug-in is imported only when it is needed, because some load large libraries.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any, Generic, Protocol, TypeVar

from pathgauge.collector.core.documents import did_you_mean

OWN_PACKAGE = "pathgauge"
_GROUPS = "pathgauge."
"""What the names of all groups begin with."""


class PluginError(ValueError):
    """A plug-in cannot be found, imported or used. The message names it and gives the reason."""


class Ordered(Protocol):
    """A plug-in that competes with others of its kind."""

    @property
    def before(self) -> tuple[str, ...]:
        """Names of the plug-ins that are asked after this one."""
        ...


PluginT = TypeVar("PluginT")
OrderedT = TypeVar("OrderedT", bound=Ordered)


@dataclass(frozen=True, slots=True)
class PluginRegistry(Generic[PluginT]):
    """The installed plug-ins of one kind. Their names are those of the entry points."""

    kind: str
    """As messages call it, such as `sink`."""
    group: str
    expected: type[PluginT] | None = None
    """The type of its objects; `None` leaves the check to the caller."""

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted({point.name for point in _installed(self.group)}))

    def get(self, name: str) -> PluginT:
        """The plug-in called `name`. Raises `PluginError`."""
        points = [point for point in _installed(self.group) if point.name == name]
        if not points:
            known = self.names()
            hint = did_you_mean(name, known) or f"; the {self.kind}s are {', '.join(known)}"
            raise PluginError(f"no {self.kind} {name!r}{hint}")
        self._refuse_duplicates(points)
        return self._load(points[0])

    def all(self) -> dict[str, PluginT]:
        """Every plug-in by name, third-party ones first. Raises `PluginError`."""
        points = sorted(_installed(self.group), key=lambda point: (_is_own(point), point))
        self._refuse_duplicates(points)
        return {point.name: self._load(point) for point in points}

    def _refuse_duplicates(self, points: Iterable[EntryPoint]) -> None:
        values: dict[str, set[str]] = {}
        for point in points:
            values.setdefault(point.name, set()).add(point.value)
        for name, objects in values.items():
            if len(objects) > 1:
                found = ", ".join(sorted(objects))
                raise PluginError(
                    f"several installed packages have a {self.kind} {name!r}: {found}"
                )

    def _load(self, point: EntryPoint) -> PluginT:
        try:
            found: PluginT = import_object(point.value)
        except PluginError as error:
            raise PluginError(f"{self._described(point)}: {error}") from error
        if self.expected is not None and not isinstance(found, self.expected):
            raise PluginError(
                f"{self._described(point)}: {point.value!r} is no {self.kind}: found"
                f" {type(found).__name__}, expected a pathgauge.{self.expected.__name__}"
            )
        return found

    def _described(self, point: EntryPoint) -> str:
        package = point.dist.name if point.dist is not None else "unknown"
        return f"the {self.kind} {point.name!r} of the installed package {package}"


def _installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group.

    Reading them takes milliseconds, and each scenario with criteria of its own asks for them. So
    they are read again only when packages may have changed.
    """
    folders = tuple((path, _modified(path)) for path in sys.path)
    return _entry_points(folders).get(group, ())


@lru_cache(maxsize=1)
def _entry_points(folders: tuple[tuple[str, int], ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    found = entry_points()
    own = (group for group in found.groups if group.startswith(_GROUPS))
    return {group: tuple(found.select(group=group)) for group in own}


def _modified(path: str) -> int:
    """When something was added to a folder, or removed from it."""
    try:
        return os.stat(path or ".").st_mtime_ns
    except (OSError, ValueError):
        return 0


def in_order(plugins: Mapping[str, OrderedT]) -> dict[str, OrderedT]:
    """The same plug-ins, each before those that its `before` names, else in the given order.

    Raises `PluginError` when two plug-ins want to be before each other.
    """
    after: dict[str, list[str]] = {name: [] for name in plugins}
    for name, plugin in plugins.items():
        for later in plugin.before:
            after.setdefault(later, []).append(name)
    position = {name: index for index, name in enumerate(plugins)}
    sorter = TopologicalSorter(after)
    try:
        sorter.prepare()
    except CycleError as error:
        raise PluginError(
            f"plug-ins that are before each other: {', '.join(error.args[1])}"
        ) from None
    ordered: list[str] = []
    ready: list[str] = []
    while sorter.is_active():
        ready += sorter.get_ready()
        ready.sort(key=lambda name: position.get(name, len(position)))
        ordered.append(ready.pop(0))
        sorter.done(ordered[-1])
    return {name: plugins[name] for name in ordered if name in plugins}


def import_object(reference: str, hint: str = "") -> Any:
    """The object at `module:attribute`. `hint` ends the message when there is no such module.

    Raises `PluginError`, also for whatever the module itself raises.
    """
    module, _, attributes = reference.partition(":")
    if not module or not attributes:
        raise PluginError(f"{reference!r} is not of the form module:Class")
    found = _import_module(module, hint)
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            raise PluginError(f"the module {module!r} has no {attributes!r}")
        found = getattr(found, attribute)
    return found


def _import_module(module: str, hint: str) -> Any:
    try:
        with chdir(os.curdir):  # other paths of the configuration may be relative
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise PluginError(f"importing the module {module!r} failed: {error}") from error
        raise PluginError(f"no module {module!r}{hint}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # third-party code may raise anything
        raise PluginError(
            f"importing the module {module!r} failed: {type(error).__name__}: {error}"
        ) from error


def _is_own(point: EntryPoint) -> bool:
    return point.dist is not None and _is_pathgauge(point.dist)


@lru_cache
def _is_pathgauge(package: Distribution) -> bool:
    """Reading the name parses all metadata of a package, and there are 80 entry points in one."""
    return package.name == OWN_PACKAGE
