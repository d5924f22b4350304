"""One contract per dataset, collected from the modules that declare them; :data:`EVERY` has those of the lake."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType

from blogdata.contract.contract import Contract
from blogdata.contract.writes import Append
from blogdata.planning.graph import Graph
from blogdata.planning.reach import landed_input
from quality.contracts import (
    ads,
    audience,
    daily_report,
    devices,
    enriched,
    live,
    page_views,
    requests,
    returning,
    serving,
    sessions,
    users,
    visits,
    visits_model,
    visits_shared,
)


def _declared(*modules: ModuleType) -> Mapping[str, Contract]:
    values = [value for module in modules for value in vars(module).values()]
    return MappingProxyType({value.dataset: value for value in values if isinstance(value, Contract)})


def _by_layer(declared: Mapping[str, Contract]) -> Mapping[str, Contract]:
    order = ("bronze", "silver", "gold")
    return MappingProxyType(dict(sorted(declared.items(), key=lambda item: order.index(item[1].layer))))


CONTRACTS = _by_layer(
    _declared(
        *(visits, users, devices, enriched, page_views, audience),
        *(ads, sessions, requests, daily_report, visits_model, visits_shared, returning),
    )
)
"""Every dataset that is computed by partitions, in the order of the lineage."""
GRAPH = Graph(contracts=CONTRACTS)
"""Their dependencies and the order in which they run."""
LANDED: Mapping[str, Contract] = MappingProxyType(
    {name: contract for name, contract in CONTRACTS.items() if landed_input(contract) is not None}
)
"""The datasets that are computed from the landing zone."""
STREAMED: Mapping[str, Contract] = MappingProxyType(
    {name: contract for name, contract in _declared(live).items() if isinstance(contract.write, Append)}
)
"""The datasets that streams append to; `blogdata run` does not compute them."""
EVERY: Mapping[str, Contract] = _by_layer({**CONTRACTS, **STREAMED})
SERVED = _declared(serving)
"""Datasets served to a database; they are not tables of the lake."""
RELEASED = Path(__file__).with_name("released.json")
"""The released schemas, written by `blogdata schema release`."""
DECLARED: Mapping[str, Contract] = MappingProxyType({**EVERY, **SERVED})


def streamed_by(write: Append) -> Mapping[str, Contract]:
    """Return the datasets that a stream appends to, in the order in which it does."""
    return {name: contract for name, contract in STREAMED.items() if contract.write == write}
