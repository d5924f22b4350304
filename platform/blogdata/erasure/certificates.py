"""Certificates of erasures (`ops.erasure_certificates`): what was done where, when and by which code; never a value.

Persons stand in them by keyed hashes, so that whoever has the key can show that somebody was erased, and nobody else
can try names. A certificate is one commit, so it is there as a whole or not at all.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from blogdata.erasure.clearing import Clearing
from blogdata.evidence.erasure_certificates import CERTIFICATES, SCHEMA
from blogdata.lake import arrow
from blogdata.lake.lake import Lake
from blogdata.lake.store import ZSTD, compact_if_due
from blogdata.lake.store_faults import store_faults

WHOLE = "the whole deployment"
"""Place of the line that says what a search of all files found in the end."""


@dataclass(frozen=True, kw_only=True)
class CertificateLine:
    """What a certificate says of one place.

    Args:
        left_because: Why it was left; empty: it was cleared.
    """

    certificate: str
    issued_at: datetime
    code_version: str
    persons: tuple[str, ...]
    place: str
    files: int
    rows: int
    gone: dict[str, str]
    note: str
    left_because: str
    files_with_values: int


def issue(lake: Lake, name: str, at: datetime, code_version: str, persons: Iterable[str], clearing: Clearing) -> None:
    """Issue the certificate of an erasure, unless it was issued already."""
    if any(line.certificate == name for line in certificates(lake)):
        return
    common = {
        "certificate": name,
        "issued_at": at,
        "code_version": code_version,
        "persons": json.dumps(sorted(persons)),
    }
    rows = [{**common, **line} for line in _lines(clearing)]
    table = lake.table(CERTIFICATES)
    with store_faults(CERTIFICATES):
        write_deltalake(
            lake.path(CERTIFICATES) if table is None else table,
            pa.Table.from_pylist(rows, schema=SCHEMA),
            mode="error" if table is None else "append",
            storage_options=dict(lake.storage_options),
            commit_properties=CommitProperties(max_commit_retries=0),
            writer_properties=ZSTD,
        )
    written = table or lake.table(CERTIFICATES)
    assert written is not None
    compact_if_due(written)


def _lines(clearing: Clearing) -> Iterator[dict[str, Any]]:
    nothing = {"files": 0, "rows": 0, "gone": "{}", "note": "", "left_because": "", "files_with_values": 0}
    for one in clearing.cleared:
        counts = {"files": one.files, "rows": one.rows, "gone": json.dumps(dict(one.gone)), "note": one.note}
        yield {**nothing, **counts, "place": one.place, "left_because": one.left}
    left: defaultdict[str, set[str]] = defaultdict(set)
    for trace in clearing.remaining:
        left[trace.place].add(trace.path)
    for place, paths in sorted(left.items()):
        yield {**nothing, "place": place, "files_with_values": len(paths)}
    searched = clearing.searched
    note = f"{searched.files:,} files were searched; {len(searched.unsearched):,} parts of them could not be read"
    if clearing.short:
        note += f"; {clearing.short:,} values were too short to be searched for"
    yield {**nothing, "place": WHOLE, "note": note, "files_with_values": len(set().union(*left.values()))}


def certificates(lake: Lake) -> Sequence[CertificateLine]:
    """List the certificates, a line for each place, in the order in which they were issued."""
    table = lake.table(CERTIFICATES)
    if table is None:
        return []
    rows = arrow.select(table, "SELECT * FROM t ORDER BY issued_at, certificate, place")
    return [
        CertificateLine(**{**row, "persons": tuple(json.loads(row["persons"])), "gone": json.loads(row["gone"])})
        for row in rows
    ]
