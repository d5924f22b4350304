"""The places of a deployment that have values of persons, as data: for the documentation, and to be held against files.

A place has what identifies a user or visitor, directly or by a pseudonym. Quasi-identifiers are in more places: counts
are grouped by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from blogdata.publish.contract import Contract


@dataclass(frozen=True, kw_only=True)
class Place:
    """Files of a deployment that have values of persons.

    Args:
        files: Patterns of their paths below the home, with landing zone and lake at their default places; `*` matches
            folders, too.
        always: Every deployment with such data has them; False: only if something else happens, which `values` says.
    """

    name: str
    files: tuple[str, ...]
    values: str
    always: bool = True
    cleared: str = ""

    def has(self, path: str) -> bool:
        """Return whether a file is among them."""
        return any(fnmatchcase(path, pattern) for pattern in self.files)


_OVERWRITTEN = "their lines are overwritten in place"

OUTSIDE_TABLES = (
    Place(
        name="hidden files of the landing zone",
        files=("landing/*/.*",),
        values="what a killed process had not landed yet",
        always=False,
        cleared="the platform's own are removed, those of producers stay and are named",
    ),
    Place(
        name="landed visit events and requests",
        files=("landing/visits/*",),
        values="everything that was sent, corrections of dead letters included",
        cleared=_OVERWRITTEN,
    ),
    Place(
        name="landed users",
        files=("landing/users/*",),
        values="ids, logins, e-mails",
        cleared=_OVERWRITTEN,
    ),
    Place(
        name="landed ads",
        files=("landing/ads/*",),
        values="`visit_id`",
        cleared=_OVERWRITTEN,
    ),
    Place(
        name="landed access logs",
        files=("landing/access_logs/*",),
        values="whole logs as they were landed, beside the hours that they were split into",
        always=False,
        cleared=_OVERWRITTEN,
    ),
    Place(
        name="refused batches",
        files=("lake/refused/*.parquet",),
        values="the rows that an audit refused, all columns, also as limits in the footers of the files; for 14 days",
        always=False,
        cleared="removed, all of them",
    ),
    Place(
        name="state of streams",
        files=("checkpoints/*/state/*",),
        values="what a stream remembers of open sessions and of displays that wait for events",
        cleared="removed: each stream begins anew, and sessions that were open are lost from its state",
    ),
    Place(
        name="outbox of the partner's feed",
        files=("partner.sqlite*",),
        values="`user_id` as the key and `visit_id` in the payload; if events are sent to a partner",
        always=False,
        cleared="the rows are deleted and overwritten; that the partner is to be told is noted",
    ),
    Place(
        name="events from outside",
        files=("landing/_events/*",),
        values="what a sender puts into an event, until its run exists; no value of a visit is expected there",
        always=False,
        cleared="refused ones are removed; events that wait stay and are named",
    ),
    Place(
        name="journal of an erasure under way",
        files=("forgetting.json",),
        values="all that persons who are being forgotten are known by; until the erasure has ended",
        always=False,
        cleared="removed at the end",
    ),
    Place(
        name="Spark's log and temporary files",
        files=("services/spark/*",),
        values="rows on which Spark fails; spilled and shuffled rows while the server runs",
        always=False,
        cleared="the server is stopped, and they are removed; it starts when it is needed next",
    ),
)


def places(contracts: Iterable[Contract]) -> Iterator[Place]:
    """List all places: tables by their contracts, and everything else."""
    for contract in contracts:
        if columns := [column.name for column in contract.columns if column.singles_out]:
            yield Place(
                name=contract.dataset,
                # A dataset of several tables has them beside its own folder.
                files=tuple(f"lake/{contract.layer}/{own}{contract.name}/*.parquet" for own in ("", "_")),
                values=", ".join(f"`{name}`" for name in columns),
            )
    yield from OUTSIDE_TABLES
