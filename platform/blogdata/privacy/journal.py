"""An erasure under way (`forgetting.json` of the home), and the certificates of those that have ended.

The journal has the persons' values as they are, since steps search for them after no table has them any more; it is
gone when the erasure has ended. A certificate has keyed hashes of persons and no value: only with the key can it be
shown that somebody was erased.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from blogdata.files import write_atomically
from blogdata.landing.landed_persons import Identifiers
from blogdata.planning import clock

FILE = "forgetting.json"
"""Name of the journal in the home."""
CERTIFICATES = "erasure_certificates"
"""Folder of the home with a file for each erasure that has ended."""


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """An erasure under way; times are seconds since 1970."""

    persons: Identifiers
    at: float
    registered: float | None = None
    """The newest time at which any of them registered; None: unknown."""
    done: Mapping[str, float] = field(default_factory=dict)
    """Names of the steps that are done, to when they were."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Place to what has to be known of it afterwards."""


@dataclass(frozen=True)
class Journal:
    """The journal of a deployment: of one erasure at a time, which only the owner of the process changes."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / FILE

    def under_way(self) -> Erasure | None:
        if not self.path.exists():
            return None
        record = json.loads(self.path.read_bytes())
        persons = {kind: frozenset(values) for kind, values in record.pop("persons").items()}
        return Erasure(persons=Identifiers(**persons), **record)

    def write(self, erasure: Erasure) -> None:
        """Record an erasure as it is now; on the disk when it returns."""
        for cut_off in self.home.glob(f".{FILE}.*"):
            cut_off.unlink()
        persons = {kind: sorted(values) for kind, values in erasure.persons.by_kind().items()}
        write_atomically(self.path, json.dumps({**asdict(erasure), "persons": persons}).encode())

    def finish(self, step: str) -> None:
        erasure = self.known()
        self.write(replace(erasure, done={**erasure.done, step: clock.now().timestamp()}))

    def note(self, place: str, text: str) -> None:
        """Record what is about to be cleared: the first note stays, since a resumed erasure finds only the rest."""
        erasure = self.known()
        self.write(replace(erasure, notes={place: text, **erasure.notes}))

    def end(self, certificate: Mapping[str, Any]) -> Path:
        folder = self.home / CERTIFICATES
        folder.mkdir(exist_ok=True)
        file = folder / f"{certificate['erasure']}.json"
        write_atomically(file, json.dumps(certificate, indent=1).encode())
        self.path.unlink()
        return file

    def known(self) -> Erasure:
        erasure = self.under_way()
        assert erasure is not None
        return erasure
