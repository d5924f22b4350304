"""The generated parts of the page of places with values of persons."""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.evidence.persons import OUTSIDE_TABLES
from blogdata.publish.contract import Contract
from blogdata.publish.schema import Column, How


def columns(contracts: Iterable[Contract]) -> str:
    """Write a table of the datasets' columns with values of persons, and which datasets have none."""
    lines = ["| dataset | " + " | ".join(how.value for how in How) + " |", "|---" * (len(How) + 1) + "|"]
    without = []
    for contract in contracts:
        named = [[_name(contract, column) for column in contract.columns if _leads(column) is how] for how in How]
        if any(named):
            lines.append(f"| `{contract.dataset}` | " + " | ".join(map(", ".join, named)) + " |")
        else:
            without.append(f"`{contract.dataset}`")
    return "\n".join([*lines, "", f"Without a column of a person: {', '.join(without)}."])


def _leads(column: Column) -> How | None:
    return column.subject.how if column.subject else None


def _name(contract: Contract, column: Column) -> str:
    return f"`{column.name}`" + ("" if column.personal or not contract.shared else "*")


def files() -> str:
    """Write a table of the places outside of tables."""
    lines = ["| place | files | values | | when a person is forgotten |", "|---|---|---|---|---|"]
    for place in OUTSIDE_TABLES:
        names = ", ".join(f"`{pattern}`" for pattern in place.files)
        always = "" if place.always else "possibly"
        lines.append(f"| {place.name} | {names} | {place.values} | {always} | {place.cleared} |")
    return "\n".join(lines)
