"""The released versions of contracts' schemas, as a file in version control (Schema Compatibility Enforcer).

A version is added when a schema or its migrations differ from the last one. Continuous integration compares the
contracts with these versions without a table, a lake or Spark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from blogdata.errors import ConfigurationError
from blogdata.publish.column_types import Field, parse
from blogdata.publish.contract import Contract
from blogdata.publish.incompatibilities import Incompatibility, incompatible_with

_REQUIRED, _FILLED = " NOT NULL", " FILLED"


@dataclass(frozen=True, kw_only=True)
class Release:
    """A released version of one schema.

    Args:
        columns: Column to its type, with ` NOT NULL` if it is required, and ` FILLED` if older rows were given values.
    """

    number: int
    released_on: date
    columns: Mapping[str, str]
    retires: Mapping[str, str]
    breaking: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(_field(name, text) for name, text in self.columns.items())


@dataclass(frozen=True, kw_only=True)
class Compared:
    dataset: str
    changed: bool
    breaks: tuple[Incompatibility, ...]


Releases = Mapping[str, Sequence[Release]]


def read(file: Path) -> Releases:
    """Read the released versions: dataset to its versions, in order."""
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {
            dataset: [
                Release(
                    number=number,
                    released_on=date.fromisoformat(version["released_on"]),
                    columns=version["columns"],
                    retires=version.get("retires", {}),
                    breaking=version.get("breaking", False),
                )
                for number, version in enumerate(versions, 1)
            ]
            for dataset, versions in found.items()
        }
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            what=f"the released schemas cannot be read: {error}",
            where=str(file),
            next_step="take the file of the last release from version control",
        ) from error


def compare(releases: Releases, contracts: Iterable[Contract], today: date) -> list[Compared]:
    return [_compared(releases.get(contract.dataset, ()), contract, today) for contract in contracts]


def add(
    releases: Releases, contracts: Iterable[Contract], today: date, *, breaking: Collection[str] = ()
) -> tuple[Releases, list[str]]:
    """Add a version for every contract that differs from its last one."""
    every = {dataset: list(versions) for dataset, versions in releases.items()}
    added = []
    for contract in contracts:
        versions = every.setdefault(contract.dataset, [])
        if not _differs(versions, contract):
            continue
        columns, retires = _recorded(contract)
        versions.append(
            Release(
                number=len(versions) + 1,
                released_on=today,
                columns=columns,
                retires=retires,
                breaking=contract.dataset in breaking,
            )
        )
        added.append(contract.dataset)
    return every, added


def write(file: Path, releases: Releases) -> None:
    plain = {dataset: [_as_json(version) for version in versions] for dataset, versions in sorted(releases.items())}
    hidden = file.with_name(f".{file.name}")
    hidden.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    hidden.replace(file)


def _compared(versions: Sequence[Release], contract: Contract, today: date) -> Compared:
    first = max((version.number for version in versions if version.breaking), default=1)
    counted = [version for version in versions if version.number >= first]
    # What the last release announced counts, not what the contract says now: consumers could read only that.
    announced = versions[-1].retires if versions else {}
    declared = {migration.old for migration in contract.migrations}
    retired = {column for column, ends in announced.items() if column in declared and ends <= today.isoformat()}
    # A column that a released version no longer has was removed by the rules then.
    gone = {name for version in counted for name in version.columns} - set(versions[-1].columns if versions else ())
    fields = {version.number: version.fields for version in counted}
    breaks = incompatible_with(fields, contract.fields, contract.compatibility, retired=retired | gone)
    return Compared(dataset=contract.dataset, changed=_differs(versions, contract), breaks=tuple(breaks))


def _differs(versions: Sequence[Release], contract: Contract) -> bool:
    return not versions or (versions[-1].columns, versions[-1].retires) != _recorded(contract)


def _recorded(contract: Contract) -> tuple[dict[str, str], dict[str, str]]:
    columns = {
        field.name: f"{field.type}{'' if field.nullable else _REQUIRED}{_FILLED if field.filled else ''}"
        for field in contract.fields
    }
    return columns, {migration.old: migration.ends.isoformat() for migration in contract.migrations}


def _field(name: str, text: str) -> Field:
    kind, filled = text.removesuffix(_FILLED), text.endswith(_FILLED)
    required = kind.endswith(_REQUIRED)
    return Field(name, parse(kind.removesuffix(_REQUIRED)), nullable=not required, filled=filled)


def _as_json(version: Release) -> dict[str, Any]:
    return {
        "released_on": version.released_on.isoformat(),
        **({"breaking": True} if version.breaking else {}),
        **({"retires": dict(version.retires)} if version.retires else {}),
        "columns": dict(version.columns),
    }
