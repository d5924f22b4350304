"""The Incremental Loader by time partitions: a provider's files of an hour land in the same hour, byte for byte.

The provider delivers each hour into a folder of its own. A window is such a folder, so reading the windows of a run
reads nothing else, and no column is needed that says what is new. A folder without `_SUCCESS` is not complete, and is
not read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from blogdata.patterns.ingestion.landed_entries import LandedFile, is_data
from blogdata.patterns.ingestion.landed_links import require_within
from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.patterns.ingestion.passthrough_replicator import replicate
from blogdata.patterns.ingestion.readiness_marker import FLAG, mark, scan
from blogdata.patterns.ingestion.whole_files import alone
from blogdata.publish.partitions import Grain


@dataclass(frozen=True, kw_only=True)
class Partitions:
    """Files of a provider by hours, and where they land.

    Args:
        source: The provider's folder, with `date=2026-01-05/hour=10` in it.
    """

    source: Path
    landed: Path
    prefix: str

    def new(self) -> list[str]:
        """List the complete hours of which files have not landed, or have changed since: by names and times."""
        return [part.key for part in scan(self.source, Grain.HOUR) if part.ready and any(self._left(part))]

    def load(self, hours: Iterable[str], *, prepare: Callable[[Path], object] = lambda _: None) -> dict[str, int]:
        """Land the files of some hours, and return how many of each; hours that are not complete are left out.

        Args:
            prepare: Called with each landed file before its hour is complete; it may overwrite lines of it.

        Raises:
            SourceMissing: A file cannot be read.
            LinkRefused: An hour is a link that leads out of the landing zone.
        """
        wanted = set(hours)
        found: dict[str, int] = {}
        with alone(self.landed):
            for part in scan(self.source, Grain.HOUR, since=min(wanted, default="")):
                if part.key in wanted and part.ready:
                    found[part.key] = self._land(part, prepare)
        return found

    def _land(self, part: LandedPartition, prepare: Callable[[Path], object]) -> int:
        folder = self._folder(part.key)
        left = list(self._left(part))
        for file in left:
            target = folder / self._name(file)
            require_within([target], self.landed.parent)
            replicate(part.folder / file.name, target)
            prepare(target)
            os.utime(target, ns=(file.mtime_ns, file.mtime_ns))
        if folder.is_dir():
            others = any(is_data(path.name) and not path.name.startswith(self.prefix) for path in folder.iterdir())
            # An hour in which another producer writes is complete when that producer says so.
            if (folder / FLAG).exists() if others else left or not (folder / FLAG).exists():
                mark(folder)
        return len(left)

    def _left(self, part: LandedPartition) -> Iterable[LandedFile]:
        for file in part.files:
            there = self._folder(part.key) / self._name(file)
            state = there.stat() if there.exists() else None
            # Not by size: lines of forgotten persons are overwritten, also in compressed files.
            if state is None or state.st_mtime_ns != file.mtime_ns:
                yield file

    def _name(self, file: LandedFile) -> str:
        return f"{self.prefix}-{file.name.replace('/', '-')}"

    def _folder(self, key: str) -> Path:
        return self.landed / f"date={key[:10]}" / f"hour={key[11:]}"
