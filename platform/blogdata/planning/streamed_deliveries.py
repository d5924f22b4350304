"""What the SLA Misses Detector judges of a stream: how long after their landing the newest files were published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path

from blogdata.evidence.appended import appended
from blogdata.patterns.error_management.checkpointer import Checkpoint, checkpoints
from blogdata.patterns.error_management.streamed_files import arrival_hour
from blogdata.patterns.observability.sla_misses_detector import Delivery
from blogdata.planning.deliveries import LATELY, first_published
from blogdata.planning.observed import Observed, StreamedInput
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, start_of
from blogdata.publish.watch import StreamSla

_NEWEST = 100
"""How many of the newest commits are looked at: Spark retains so many batches."""


def delivered_lately(deployment: Observed, contract: Contract, sla: StreamSla) -> list[Delivery]:
    """List the newest batches of a stream, one delivery for each of their arrival hours, in order.

    A batch that is planned and not committed is listed as not published; files that are in no batch are the Lag
    Detector's. What landed before the stream was started is history, and no promise. So is the end of an hour that is
    over for more than a day: of files that come after it, only the time since their landing is judged.
    """
    (stream,) = [one for one in deployment.streams if contract.dataset in one.contracts]
    checkpoint = _checkpoint(stream)
    if checkpoint is None:
        return []
    since = _judged_since(deployment, contract, checkpoint, sla)
    published = _published(deployment, contract, checkpoint)
    landing, found = deployment.look.zone.folder, []
    for batch, (committed, files) in sorted(_files(checkpoint).items()):
        if committed and batch not in published:
            # Nothing of it was for this dataset.
            continue
        for hour, landed_at in sorted(_landed(files, landing).items()):
            if landed_at >= since:
                ended = start_of(hour, Grain.HOUR) + Grain.HOUR.length
                is_history = ended + sla.after_hour < deployment.now - LATELY
                found.append(
                    Delivery(
                        partition=f"{hour} (batch {batch})",
                        # A file that comes within its hour, or long after it, is due by its landing only.
                        ended=landed_at if is_history else min(ended, landed_at),
                        input_at=landed_at,
                        published_at=published.get(batch),
                        waits_for=f"landing.{stream.source.table}",
                    )
                )
    return found


def _checkpoint(stream: StreamedInput) -> Checkpoint | None:
    used = [one for one in checkpoints(stream.checkpoints, stream.name) if one.identity]
    return used[-1] if used else None


def _judged_since(deployment: Observed, contract: Contract, checkpoint: Checkpoint, sla: StreamSla) -> datetime:
    """Return the landing time from which files are judged: of lately, and since the stream and its checkpoint began."""
    first = first_published(deployment.look.history(contract.dataset)).values()
    begun = max(min(first, default=deployment.now), checkpoint.begun_at)
    return max(begun - sla.after_landing, deployment.now - LATELY)


def _published(deployment: Observed, contract: Contract, checkpoint: Checkpoint) -> Mapping[int, datetime]:
    """Map the batches of a checkpoint to the times at which readers saw their rows."""
    times = {entry.version: entry.committed_at for entry in deployment.look.history(contract.dataset)}
    found = {}
    for commit in islice(appended(deployment.look.events.lake, contract.dataset), _NEWEST):
        once, at = commit.info["appended"], times.get(commit.version)
        if once["stream"] == checkpoint.writer and at is not None:
            found[int(once["batch"])] = at
    return found


def _files(checkpoint: Checkpoint) -> Mapping[int, tuple[bool, list[Path]]]:
    """Map the batches that are retained to whether they are committed, and their files, those of all sources."""
    found: dict[int, tuple[bool, list[Path]]] = {}
    for _, _, number, _, _, files, committed, _ in checkpoint.rows():
        found.setdefault(number, (committed, []))[1].extend(map(Path, files))
    return found


def _landed(files: list[Path], landing: Path) -> Mapping[str, datetime]:
    """Map arrival hours to the time at which the first of their files landed.

    A file that is gone has none, nor has one of another landing zone: a checkpoint that was copied with its home, or
    that is older than the zone, names the files where they were.
    """
    found: dict[str, datetime] = {}
    for hour, at in _times(files, landing):
        found[hour] = min(at, found.get(hour, at))
    return found


def _times(files: list[Path], landing: Path) -> Iterator[tuple[str, datetime]]:
    for file in files:
        hour = arrival_hour(str(file.relative_to(landing))) if file.is_relative_to(landing) else None
        if hour is not None:
            with suppress(FileNotFoundError):
                yield hour, datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
