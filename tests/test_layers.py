"""The layers of `pyproject.toml` hold the whole collector, and all that lies below the shell is kept free of I/O."""

import pkgutil
import tomllib
from pathlib import Path
from typing import Any

import collector
import scorers.judges

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
CONTRACTS: list[dict[str, Any]] = PYPROJECT["tool"]["importlinter"]["contracts"]
LAYERS: list[str] = next(contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
HIGHEST_OF_THE_CORE = "pipeline"


def modules(layers: list[str]) -> list[str]:
    return [module for layer in layers for module in layer.split(" | ")]


def test_every_module_of_the_collector_has_exactly_one_layer() -> None:
    assert sorted(modules(LAYERS)) == sorted(module.name for module in pkgutil.iter_modules(collector.__path__))


def test_every_module_from_the_pipeline_down_is_kept_free_of_io() -> None:
    core = [f"collector.{module}" for module in modules(LAYERS[LAYERS.index(HIGHEST_OF_THE_CORE) :])]
    without_io = next(contract["source_modules"] for contract in CONTRACTS if "time" in contract.get("forbidden_modules", ()))
    library = {f"scorers.{module.name}" for module in pkgutil.iter_modules(scorers.__path__)} - {"scorers.judges"}
    judges = {f"scorers.judges.{module.name}" for module in pkgutil.iter_modules(scorers.judges.__path__)} - {"scorers.judges.asking"}
    assert sorted(without_io) == sorted([*core, *library, *judges])
