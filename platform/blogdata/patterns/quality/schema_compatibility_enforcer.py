"""Schema Compatibility Enforcer: a change of a schema that would break its readers is refused before it is made.

Problem: a team removes a column that it no longer needs. The job of another team names it, and fails at night.
How it works: by the mode that schema registries call full: new code reads rows of every version, and a query of any
version reads new rows. :func:`blogdata.table.incompatibilities.incompatibilities` lists every change that breaks
this. It is enforced in continuous integration against the released schema of the contract (:func:`breaks`), and before
every write against the table (:func:`blogdata.table.incompatibilities.hold_table`). As no release takes a column away
or changes its type, the last release stands for all before it. New fields of a producer are no change of a table; they
are kept in the raw line.
The trap: Avro's rules do not hold for tables. An Avro reader replaces an absent optional field by its default; a SQL
query that names an absent column fails. So no column may be removed, however optional. And a column that is added is
null in the rows that are older: a required one needs a `default`, with which these rows are filled.
When not to use it: for a dataset that nobody reads yet; release its schema as a new beginning. A change that has to
break readers is a Schema Migrator's work.
Source: Data Engineering Design Patterns, ch. 9.
"""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from blogdata.contract.column_types import parse_fields
from blogdata.contract.contract import Contract
from blogdata.table.incompatibilities import Incompatibility, incompatibilities

Release = Mapping[str, Mapping[str, str]]
"""A released schema: `columns` to their types, with ` NOT NULL` if required, and `retires` to first days without."""


def read(file: Path) -> dict[str, Release]:
    """Read the released schemas, a file in version control: dataset to its last release."""
    released: dict[str, Release] = json.loads(file.read_text(encoding="utf-8"))
    return released


def write(file: Path, releases: Mapping[str, Release]) -> None:
    file.write_text(json.dumps(dict(sorted(releases.items())), indent=1) + "\n", encoding="utf-8")


def release_of(contract: Contract) -> Release:
    return {
        "columns": {field.name: f"{field.type}{'' if field.nullable else ' NOT NULL'}" for field in contract.fields},
        "retires": {migration.old: migration.ends.isoformat() for migration in contract.migrations},
    }


def breaks(release: Release, contract: Contract, today: date) -> list[Incompatibility]:
    """List what a contract breaks for those who rely on the released schema."""
    # What the release announced counts, not what the contract says now: consumers could read only that.
    declared = {migration.old for migration in contract.migrations}
    retired = {name for name, ends in release["retires"].items() if name in declared and ends <= today.isoformat()}
    fields = parse_fields(", ".join(f"`{name}` {kind}" for name, kind in release["columns"].items()))
    return incompatibilities(fields, contract.fields, retired=retired)
