"""The version of the code that determines the rows."""

from __future__ import annotations

from pathlib import Path

import assets
import evidence
import lake
import patterns
import publish
import quality
from publish.run import code_version

SOURCES = tuple(Path(package.__file__ or "").parent for package in (assets, evidence, lake, patterns, publish, quality))
"""Folders whose code determines the rows."""


def version() -> str:
    """Return a digest of the sources in these folders."""
    return code_version(*SOURCES)
