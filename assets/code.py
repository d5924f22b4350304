"""The computations of the blog's datasets, collected from the modules that declare them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import assets
import patterns
import quality
from assets import bronze, gold, silver
from orchestration.computation import Code, computations
from patterns.core.run import code_version
from quality.contracts import GRAPH

SOURCES = tuple(Path(package.__file__ or "").parent for package in (assets, patterns, quality))
"""Folders whose code decides what the rows are."""


@lru_cache(maxsize=1)
def code() -> Code:
    """Collect the computations and the lineage, with the version of their code."""
    modules = [module for layer in (bronze, silver, gold) for module in _modules(layer)]
    return Code(computations=computations(modules), graph=GRAPH, version=code_version(*SOURCES))


def _modules(layer: ModuleType) -> list[ModuleType]:
    return [importlib.import_module(f"{layer.__name__}.{found.name}") for found in pkgutil.iter_modules(layer.__path__)]
