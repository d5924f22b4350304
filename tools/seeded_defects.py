"""The seeded defects: small harmful changes to the code, each with the tests that notice it (`make mutants`)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Defect:
    """One seeded defect.

    Args:
        name: What goes wrong with it.
        file: The file it changes, relative to the project's root.
        noticed_by: The tests that fail, as pytest takes them.
    """

    name: str
    file: str
    noticed_by: tuple[str, ...]

    @property
    def tests(self) -> frozenset[str]:
        """Files of the tests that notice it."""
        return frozenset(test.partition("::")[0] for test in self.noticed_by)


def read(root: Path) -> list[Defect]:
    """List the seeded defects.

    Args:
        root: The project's root.
    """
    # The list is part of the tests, which are not installed.
    with _importable(root / "tests"):
        seeded = importlib.import_module("mutants.seeded").MUTANTS
    return [Defect(name=one.name, file=one.file, noticed_by=one.noticed_by) for one in seeded]


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
