"""Rows of the deployment's SQLite files, and what SQLite keeps of rows that are deleted."""

from __future__ import annotations

from collections.abc import Iterator

from blogdata.erasure.cleared import Cleared, Note
from blogdata.errors import PlatformError
from blogdata.orchestration.partner import TOKENS, known_as, outbox
from blogdata.patterns.data_value.outbox_account import Forgotten
from blogdata.services import secrets
from blogdata.services.config import Settings
from blogdata.services.locations import journal_of
from blogdata.suppression.identifiers import Identifiers


def clear(settings: Settings, persons: Identifiers, note: Note) -> Iterator[Cleared]:
    """Delete the persons' rows of the partner's outbox and of the journal of the geolocation service.

    Args:
        settings: Settings of the deployment.
        persons: Who is forgotten.
        note: Called with what is about to be cleared.
    """
    yield _outbox(settings, persons, note)
    answers = journal_of(settings)
    # A question is an address, and since when its answer holds.
    place = "geolocation.sqlite"
    rows = answers.forget(
        [f"{address} " for address in persons.addresses], before=lambda rows: note(Cleared(place=place, rows=rows))
    )
    answers.scrub()
    yield Cleared(place=place, rows=rows)


def _outbox(settings: Settings, persons: Identifiers, note: Note) -> Cleared:
    place, box = "partner.sqlite", outbox(settings)
    if not box.path.exists():
        return Cleared(place=place)

    def of(found: Forgotten) -> Cleared:
        return Cleared(place=place, rows=found.records, note=_to_be_told(settings, persons, found.delivered))

    try:
        with box.alone():
            found = box.forget(persons.user_ids, before=lambda found: note(of(found)))
            if found.open:
                left = f"{found.open} of {found.records} records are in a request whose answer is not known"
                return Cleared(place=place, left=f"{left}: send or settle it first")
        box.scrub()
    except PlatformError as error:
        return Cleared(place=place, left=error.what)
    return of(found)


def _to_be_told(settings: Settings, persons: Identifiers, records: int) -> str:
    if not records:
        return ""
    secret = secrets.read(settings, TOKENS).reveal()
    keys = ", ".join(sorted(known_as(user, secret) for user in persons.user_ids))
    return f"the partner has {records} of these records: tell it to erase those of the keys {keys}"
