"""Rows of the partner's outbox, and what SQLite keeps of rows that are deleted."""

from __future__ import annotations

from blogdata.erasure.cleared import Cleared, Note
from blogdata.errors import PlatformError
from blogdata.orchestration.partner import TOKENS, known_as, outbox
from blogdata.patterns.data_value.outbox import Forgotten
from blogdata.services import secrets
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers


def clear(settings: Settings, persons: Identifiers, note: Note) -> Cleared:
    """Delete the persons' rows of the partner's outbox."""
    place, box = "partner.sqlite", outbox(settings)
    if not box.path.exists():
        return Cleared(place=place)

    def of(found: Forgotten) -> Cleared:
        return Cleared(place=place, rows=found.records, note=_to_be_told(settings, persons, found.sent))

    try:
        with box.alone():
            found = box.forget(persons.user_ids, before=lambda found: note(of(found)))
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
