"""The version of the code that determines the rows."""

from __future__ import annotations

from pathlib import Path

import assets
import quality
from blogdata import evidence, lake, patterns, publish
from blogdata.publish.run import code_version

SOURCES = tuple(Path(package.__file__ or "").parent for package in (assets, evidence, lake, patterns, publish, quality))
"""Folders whose code determines the rows."""


def version() -> str:
    """Return a digest of the sources in these folders."""
    return code_version(*SOURCES)
