"""The version of the code that determines the rows."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import assets
import blogdata
import quality

_PLATFORM = Path(blogdata.__file__ or "").parent
SOURCES = (
    *(_PLATFORM / name for name in ("contract", "landing", "ledger", "patterns", "table")),
    *(Path(package.__file__ or "").parent for package in (assets, quality)),
)
"""Folders whose code determines the rows."""


@cache
def version() -> str:
    """Return a digest of the Python and Java sources in these folders."""
    digest = hashlib.sha256()
    for source in sorted(file for folder in SOURCES for end in ("*.py", "*.java") for file in folder.rglob(end)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
