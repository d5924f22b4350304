"""The version of the code that decides what the rows are."""

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
"""Folders whose code decides what the rows are."""


def version() -> str:
    """Digest the sources of the folders."""
    return code_version(*SOURCES)
