"""The generated parts of the page of places with values of persons."""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.evidence.persons import OUTSIDE_TABLES
from blogdata.publish.contract import Contract


def columns(contracts: Iterable[Contract]) -> str:
    """Write a table of the columns with values of persons, and which datasets have none."""
    lines = ["| dataset | column | whose | how | in consumer views |", "|---|---|---|---|---|"]
    without = []
    for contract in contracts:
        if not any(column.of_a_person for column in contract.columns):
            without.append(f"`{contract.dataset}`")
        for column in contract.columns:
            if column.subject and column.subject.how:
                shown = "no" if column.personal or not contract.shared else "yes"
                whose, how = column.subject.whose.value, column.subject.how.value
                lines.append(f"| `{contract.dataset}` | `{column.name}` | {whose} | {how} | {shown} |")
    return "\n".join([*lines, "", f"Without a column of a person: {', '.join(without)}."])


def files() -> str:
    """Write a table of the places outside of tables."""
    lines = ["| place | files | values | | when a person is forgotten |", "|---|---|---|---|---|"]
    for place in OUTSIDE_TABLES:
        names = ", ".join(f"`{pattern}`" for pattern in place.files)
        always = "" if place.always else "possibly"
        lines.append(f"| {place.name} | {names} | {place.values} | {always} | {place.cleared} |")
    return "\n".join(lines)
