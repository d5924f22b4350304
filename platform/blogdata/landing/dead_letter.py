"""Dead-Letter: rows that cannot be processed are set aside with every reason, and the rest goes on.

Problem: one unreadable row stops a job and everything downstream of it.
How it works: the reader of a line returns its values or *all* reasons to reject it, and never raises
(:mod:`blogdata.landing.json_lines`). The row stays with its bytes and its position; one with at least one reason is a
dead letter (:func:`is_rejected`). A corrected line is landed in the arrival hour of the line it corrects, as a file
named after that line's position (:func:`land_corrections`).
The trap: error-safe functions turn a failure into a null, which looks like a missing value: a reader distinguishes the
two. A growing share of rejected rows hides a real failure: :func:`error_for_partition` keeps downstream datasets from
using such a partition. With its first reason alone, a producer mends one fault and has the next. And bronze is computed
from landed files: an hour whose files are gone would consist of the correction alone.
When not to use it: where a missing row is worse than a late job (balances, erasures), or where order matters: a
replayed row arrives after its successors.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blogdata.contract.contract import LEAST_ROWS, Contract
from blogdata.errors import PlatformError, foreign
from blogdata.errors.remedies import Action, Query, Remedy
from blogdata.files import write_whole
from blogdata.landing.landed_formats import extension
from blogdata.landing.landed_links import require_within
from blogdata.landing.lines import REPLAY_PREFIX
from blogdata.landing.log_splitter import last_header
from blogdata.landing.readiness_marker import FLAG, Convention, mark

if TYPE_CHECKING:
    from pyspark.sql import Column

Position = tuple[str, int]
_HOUR_FOLDER = re.compile(r"([^/]+)/date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/")


def is_rejected() -> Column:
    """Build the condition that a judged row is a dead letter: `reasons` names at least one."""
    from pyspark.sql import functions as F

    return F.size("reasons") > 0


def query(dataset: str, selection: str) -> Action:
    return Query(sql=f"SELECT reasons, count(*) FROM {dataset} WHERE {selection} GROUP BY reasons")


def error_for_partition(
    partition: str, letters: Mapping[str, tuple[int, int]], *, max_share: float, dataset: str, column: str, then: Remedy
) -> PlatformError | None:
    """Return the error of a partition with too many rejected rows to be used downstream; None if it has not.

    One with fewer than :data:`LEAST_ROWS` rows is judged together with the small ones before it, and passes if its own
    share is accepted. `letters`: the rejected rows and all rows of each partition.
    """
    rejected_rows = rows = 0
    for first in sorted((key for key in letters if key <= partition), reverse=True):
        rejected, of = letters[first]
        if first == partition and rejected <= max_share * of:
            return None
        if first != partition and of >= LEAST_ROWS:
            continue
        rejected_rows, rows = rejected_rows + rejected, rows + of
        if rows < LEAST_ROWS:
            continue
        if rejected_rows <= max_share * rows:
            return None
        alone = first == partition
        judged = f"= '{partition}'" if alone else f"BETWEEN '{first}' AND '{partition}'"
        why = query(dataset, f"{column} {judged}")
        share = f"{rejected_rows / rows:.1%}"
        return PlatformError(
            what=f"{rejected_rows} of {rows} rows ({share}) are rejected, {max_share:.1%} is accepted",
            where=f"{dataset} {partition if alone else f'{first}..{partition}'}",
            next_step=Remedy("they are kept; why they are rejected: ", why, "; mend the producer, then ", then),
        )
    return None


@dataclass(frozen=True, kw_only=True)
class Correction:
    source_file: str
    source_offset: int
    payload: str

    @property
    def position(self) -> Position:
        return (self.source_file, self.source_offset)

    @property
    def table(self) -> str:
        return self._hour_folder()[1]

    @property
    def folder(self) -> str:
        """Folder of the hour of arrival of the dead letter, and therefore of its replay; its file may lie deeper."""
        return self._hour_folder()[0]

    @property
    def arrival_hour(self) -> str:
        match = self._hour_folder()
        return f"{match[2]}T{match[3]}"

    def _hour_folder(self) -> re.Match[str]:
        match = _HOUR_FOLDER.match(self.source_file)
        if match is None:
            raise PlatformError(
                what=f"'{self.source_file}' is not a file of an hour of arrival",
                where="source_file",
                next_step="take source_file and source_offset from the dead letter as they are",
            )
        return match


def read_corrections(lines: Iterable[bytes], where: str) -> list[Correction]:
    """Read corrections, one JSON object per line with source_file, source_offset and payload (text or an object).

    Of several for one position the last one counts.
    """
    corrections = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            payload = item["payload"]
            text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
            if b"\n" in text.encode():
                raise ValueError("a line break in the payload")
            correction = Correction(
                source_file=str(item["source_file"]), source_offset=int(item["source_offset"]), payload=text
            )
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise PlatformError(
                what=f"line {number} is not a correction: {foreign.unquoted(error)}",
                where=where,
                next_step='write {"source_file": …, "source_offset": …, "payload": …} a line, and no line breaks in it',
            ) from error
        corrections.append(correction)
    return _last_ones(corrections)


def land_corrections(
    corrections: Sequence[Correction],
    dead: Iterable[Position],
    landing: Path,
    *,
    letters: Contract,
    convention: Convention = "flag",
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Land corrections in the arrival hours of their dead letters; if one is refused, none is landed.

    Returns all files of the corrections, and those that changed, relative to the landing zone.

    After an interruption some of them have landed, each file whole; landing the same corrections again adds the others.
    """
    corrections, positions = _last_ones(corrections), set(dead)
    unknown = [correction for correction in corrections if correction.position not in positions]
    if unknown:
        hour = f"{letters.partition_column} = '{unknown[0].arrival_hour}'"
        query = f"SELECT source_file, source_offset, reasons FROM {letters.dataset} WHERE {hour}"
        raise PlatformError(
            what=f"{len(unknown)} position(s) are not those of dead letters, the first is {unknown[0].position}",
            where=letters.dataset,
            next_step=Remedy("list those of its hour: ", Query(sql=query)),
        )
    _require_hours(corrections, landing, convention)
    contents = {_place(correction): _content(correction, landing) for correction in corrections}
    # Rewriting an unchanged file would change its time, and its hour would be published again for nothing.
    changed = {
        place: content
        for place, content in contents.items()
        if not (landing / place).is_file() or (landing / place).read_bytes() != content
    }
    for place, content in changed.items():
        _write(landing / place, content)
    # Also after an earlier replay that was cut off before it wrote the flag, which is to be newer than all files.
    for folder in {correction.folder for correction in corrections}:
        mark(landing / folder)
    return tuple(contents), tuple(changed)


def _last_ones(corrections: Iterable[Correction]) -> list[Correction]:
    """Keep the last correction of each position: two would replace each other, as names differ by payload."""
    return list({correction.position: correction for correction in corrections}.values())


def _require_hours(corrections: Sequence[Correction], landing: Path, convention: Convention) -> None:
    files = sorted({correction.source_file for correction in corrections})
    require_within([landing / file for file in files], landing)
    gone = [file for file in files if not (landing / file).is_file()]
    if gone:
        raise PlatformError(
            what=f"{len(gone)} file(s) with dead letters are not in the landing zone any more, the first is {gone[0]}",
            where=str(landing),
            next_step="bring all files of its hour back first: the hour is computed again from what is landed there, "
            "and would consist of the corrections alone",
        )
    unflagged = [correction for correction in corrections if not (landing / correction.folder / FLAG).is_file()]
    # Without flags it is enough that the hour has been published, which its dead letters prove.
    if unflagged and convention == "flag":
        raise PlatformError(
            what=f"the hour of {unflagged[0].source_file} has no {FLAG}",
            where=str(landing),
            next_step="wait for the producer, or put the flag there once the files are whole",
        )


def _place(correction: Correction) -> str:
    kind = "log" if extension(correction.source_file) == "log" else "json"
    position = f"{correction.source_file}:{correction.source_offset}"
    # A better correction replaces another one of its position; a stream reads no name twice.
    digests = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (position, correction.payload))
    return f"{correction.folder}{REPLAY_PREFIX}{'-'.join(digests)}.{kind}"


def _content(correction: Correction, landing: Path) -> bytes:
    """Return the corrected line; of a log, the `#Fields` line above the dead letter tells its columns."""
    file = landing / correction.source_file
    header = last_header(file, correction.source_offset) if extension(file.name) == "log" else ""
    return f"{header}\n{correction.payload}\n".removeprefix("\n").encode()


def _write(file: Path, content: bytes) -> None:
    """Write a correction; an earlier one is overwritten, then renamed, so that there are never two files, or none."""
    stem = file.name.rpartition("-")[0]
    for earlier in file.parent.glob(f"{stem}*{file.suffix}"):
        write_whole(earlier, content)
        earlier.replace(file)
    if not file.exists():
        write_whole(file, content)
