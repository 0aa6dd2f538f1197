"""Loads the stemmer of rouge_score without all of nltk.

rouge_score takes its stemmer from one file of nltk. `import nltk` loads 245 modules and numpy, and
takes 40 MB and 0.4 s of CPU time. So that file is imported without running the `__init__` of its
packages, and they are forgotten afterwards: whoever imports nltk later gets all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType

Stemmer = Callable[[str], list[str]]

_PACKAGES = ("nltk", "nltk.stem")
_TOKENIZERS = "rouge_score.tokenizers"


@cache
def load_stemmer() -> Stemmer:
    """The tokenizer of rouge_score that stems. Its import takes 30 ms, so scorers that need it call
    this in their constructor.
    """
    stem: Stemmer = _tokenizers().DefaultTokenizer(use_stemmer=True).tokenize
    return stem


def _tokenizers() -> ModuleType:
    if "nltk" in sys.modules:
        return import_module(_TOKENIZERS)
    try:
        with _bare_packages():
            return import_module(_TOKENIZERS)
    except (ImportError, AttributeError):  # another release of nltk may need its whole package
        return import_module(_TOKENIZERS)


@contextmanager
def _bare_packages() -> Iterator[None]:
    try:
        for name in _PACKAGES:
            spec = find_spec(name)
            if spec is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.modules[name] = module_from_spec(spec)
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "nltk"]:
            del sys.modules[name]
