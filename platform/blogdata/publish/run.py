"""The run that writes: its id, code version and trigger, stored in every commit (Metadata Decorator)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The run that produces a commit.

    Args:
        trigger: What started the run: `manual`, or the name of a sensor, schedule, backfill or event from outside.
    """

    run_id: str
    job: str
    code_version: str
    trigger: str = "manual"
    attempt: int = 1
    event: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=8)
def code_version(*roots: Path) -> str:
    """Compute a digest of the Python and Java sources under some folders: it changes with the code."""
    digest = hashlib.sha256()
    for source in sorted(_sources(roots)):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _sources(roots: Iterable[Path]) -> Iterable[Path]:
    for root in roots:
        for pattern in ("*.py", "*.java"):
            yield from root.rglob(pattern)
