"""Partitions of a table, at the version that is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blogdata.lake.lake import Lake


@dataclass(frozen=True, kw_only=True)
class Stored:
    """Some partitions of a table."""

    lake: Lake
    dataset: str
    version: int
    partitions: Sequence[str]
