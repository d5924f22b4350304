"""One contract per dataset, found in the modules of this folder; :data:`EVERY` has those of the lake.

The contracts of `assets/<layer>/<name>.py` are in the module of the same name here.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path

from blogdata.contract.contract import Contract
from blogdata.contract.writes import Append
from blogdata.planning.graph import Graph
from blogdata.planning.reach import landed_input

_LAYERS = ("bronze", "silver", "gold", "serving")
_MODULES = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
_FOUND = [value for module in _MODULES for value in vars(module).values() if isinstance(value, Contract)]

DECLARED: Mapping[str, Contract] = {
    contract.dataset: contract for contract in sorted(_FOUND, key=lambda of: (_LAYERS.index(of.layer), of.dataset))
}
EVERY: Mapping[str, Contract] = {name: contract for name, contract in DECLARED.items() if contract.layer != "serving"}
STREAMED: Mapping[str, Contract] = {
    name: contract for name, contract in EVERY.items() if isinstance(contract.write, Append)
}
"""The datasets that streams append to; `blogdata run` does not compute them."""
CONTRACTS: Mapping[str, Contract] = {name: contract for name, contract in EVERY.items() if name not in STREAMED}
"""Every dataset that is computed by partitions, by layer."""
GRAPH = Graph(contracts=CONTRACTS)
"""Their dependencies and the order in which they run."""
LANDED: Mapping[str, Contract] = {
    name: contract for name, contract in CONTRACTS.items() if landed_input(contract) is not None
}
"""The datasets that are computed from the landing zone."""
SERVED: Mapping[str, Contract] = {name: contract for name, contract in DECLARED.items() if name not in EVERY}
"""Datasets served to a database; they are not tables of the lake."""
RELEASED = Path(__file__).with_name("released.json")
"""The released schemas, written by `blogdata schema release`."""
