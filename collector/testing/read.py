"""Reads trace files and reference files, as the commands read them, into the values that scorers
get.

Invocations keep everything that a scorer may ask for: what the model said in each call, and all
spans with their attributes. The commands keep it only for scorers that need it, to save memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from pathgauge.collector.config import reference_files
from pathgauge.collector.core.documents import ConfigError, Problem
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.offline.replay import Replayed, replay_files
from pathgauge.collector.offline.trace_files import TraceFiles, read_path
from pathgauge.scorers.authoring.extras import Extras
from pathgauge.scorers.types import Invocation, Reference

PathLike = str | os.PathLike[str]


def read_traces(path: PathLike) -> list[Invocation]:
    """The invocations in a trace file, in a folder of trace files, or in a table of predictions,
    by their start. `-` is standard input.

    What was skipped is a warning. Raises `ValueError` for a file that holds no traces, and
    `OSError`.
    """
    source = Path(path)
    files = read_path(source)
    read = read_invocations(files, source, everything_in(files.spans))
    for note in read.notes:
        warnings.warn(note, stacklevel=2)
    return [evaluation.invocation for evaluation in read.evaluations]


def read_references(*patterns: PathLike) -> list[Reference]:
    """The references in the files of these paths and patterns, such as `references/*.yaml`, in the
    order of files and scenarios.

    Raises `ConfigError`, a `ValueError`, with every mistake in the files, also when a pattern
    matches no file.
    """
    names = tuple(os.fspath(pattern) for pattern in patterns)
    loaded = reference_files.load(names)
    if not loaded.entries:
        text = "found no reference, expected at least one"
        raise ConfigError([Problem(", ".join(names), None, (), text)])
    for warning in loaded.warnings:
        warnings.warn(warning, stacklevel=2)
    return [entry.reference for entry in loaded.entries]


def read_invocations(
    files: TraceFiles,
    path: Path,
    extras: Extras,
    references: ReferenceSet | None = None,
    scenario_keys: tuple[str, ...] = DEFAULT_KEYS,
) -> Replayed:
    """The invocations without scores. `references` name rows of tables that have no id."""
    reader = Evaluator(())
    reader.extras = extras
    return replay_files(files, path, reader, references or ReferenceSet(), scenario_keys)


def everything_in(spans: Iterable[Span]) -> Extras:
    """Keep all attributes of these spans, and what models said."""
    keys: set[str] = set()
    for span in spans:
        keys.update(attribute.key for attribute in span.proto.attributes)
        span.release()
    return Extras(frozenset(keys), model_texts=True)
