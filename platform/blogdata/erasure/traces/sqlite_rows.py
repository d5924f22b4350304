"""Rows of the deployment's SQLite files, and what SQLite keeps of rows that are deleted."""

from __future__ import annotations

from collections.abc import Iterator

from blogdata.erasure.cleared import Cleared
from blogdata.errors import PlatformError
from blogdata.orchestration.partner import outbox
from blogdata.services.config import Settings
from blogdata.services.locations import journal_of
from blogdata.suppression.identifiers import Identifiers


def clear(settings: Settings, persons: Identifiers) -> Iterator[Cleared]:
    """Delete the persons' rows of the partner's outbox and of the journal of the geolocation service.

    Args:
        settings: Settings of the deployment.
        persons: Who is forgotten.
    """
    yield _outbox(settings, persons)
    answers = journal_of(settings)
    # A question is an address, and since when its answer holds.
    rows = answers.forget(f"{address} " for address in persons.addresses)
    answers.scrub()
    yield Cleared(place="geolocation.sqlite", rows=rows)


def _outbox(settings: Settings, persons: Identifiers) -> Cleared:
    place, box = "partner.sqlite", outbox(settings)
    if not box.path.exists():
        return Cleared(place=place)
    try:
        with box.alone():
            found = box.forget(persons.user_ids)
            if found.open:
                left = f"{found.open} of {found.records} records are in a request whose answer is not known"
                return Cleared(place=place, left=f"{left}: send or settle it first")
        box.scrub()
    except PlatformError as error:
        return Cleared(place=place, left=error.what)
    told = f"the partner has {found.delivered} of these records: tell it to erase them" if found.delivered else ""
    return Cleared(place=place, rows=found.records, note=told)
