"""Copies of tables for roles, which lie outside of the home: removed, whether they still have somebody's values or not.

What a role sees of a person is often no value that could be searched for, but a mask or a token. So all copies of
tables with persons go; the next export writes them from the newest versions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from blogdata.erasure.cleared import Cleared, Note
from blogdata.patterns.security import role_folders
from blogdata.publish.contract import Contract
from blogdata.services import exports
from blogdata.services.config import Settings
from blogdata.services.exports import Export


def clear(settings: Settings, of_persons: Iterable[Contract], note: Note) -> list[Cleared]:
    """Remove the copies of tables with persons from the folder of every role."""
    names = [contract.dataset for contract in of_persons]
    with exports.alone(settings):
        return [_removed(export, names, note) for export in exports.known(settings)]


def _removed(export: Export, names: Collection[str], note: Note) -> Cleared:
    place = f"copies for {export.role} in {export.folder}"
    files = sum(role_folders.files(export.folder, name) for name in names)
    if not files:
        return Cleared(place=place)
    note(
        done := Cleared(
            place=place,
            files=files,
            note="its readers find no copy of tables with persons until it is written again",
        )
    )
    for name in names:
        role_folders.remove(export.folder, name)
    return done
