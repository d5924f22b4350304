"""The computations of the blog's datasets, collected from the modules that declare them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from assets import bronze, gold, silver
from assets.code_version import version
from blogdata.runs.computation import LineageCode, computations
from quality.contracts import GRAPH


@lru_cache(maxsize=1)
def code() -> LineageCode:
    """Collect the computations and the lineage, with the version of their code."""
    modules = [
        importlib.import_module(f"{layer.__name__}.{module.name}")
        for layer in (bronze, silver, gold)
        for module in pkgutil.iter_modules(layer.__path__)
    ]
    return LineageCode(computations=computations(modules), graph=GRAPH, version=version())
