"""Copies of tables for roles, which lie outside of the home: removed, whether they still have somebody's values or not.

What a role sees of a person is often no value that could be searched for, but a mask or a token. So all copies of
tables with persons go; the next export writes them from the newest versions.
"""

from __future__ import annotations

from collections.abc import Iterable

from blogdata.erasure.cleared import Cleared
from blogdata.patterns.security import role_folders
from blogdata.publish.contract import Contract
from blogdata.services import exports
from blogdata.services.config import Settings


def clear(settings: Settings, of_persons: Iterable[Contract]) -> list[Cleared]:
    """Remove the copies of tables with persons from the folder of every role.

    Args:
        settings: Settings of the deployment.
        of_persons: Contracts of the datasets that single somebody out.
    """
    names = [contract.dataset for contract in of_persons]
    with exports.alone(settings):
        return [
            Cleared(
                place=f"copies for {export.role}",
                files=files,
                note=f"its readers find no copy of tables with persons in {export.folder} until it is written again",
            )
            for export in exports.known(settings)
            if (files := sum(role_folders.remove(export.folder, name) for name in names))
        ]
