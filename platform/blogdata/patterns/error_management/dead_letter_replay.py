"""Replays of dead letters (see Dead-Letter): a corrected line is landed in the arrival hour of the line it corrects.

The correction is a file named after the position of the dead letter, so a better correction replaces it. The name also
contains a hash of the payload, because a stream reads no name twice.

The trap: an hour whose landed files are gone. Bronze is computed from the landed files, so the hour would consist of
the correction alone.

Source: Data Engineering Design Patterns, ch. 3.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import PlatformError, foreign
from blogdata.errors.remedies import Query, Remedy
from blogdata.landing.landed_formats import extension
from blogdata.landing.landed_links import require_within
from blogdata.landing.lines import REPLAY_PREFIX
from blogdata.patterns.ingestion.log_splitter import last_header
from blogdata.patterns.ingestion.readiness_marker import FLAG, Convention, mark
from blogdata.patterns.ingestion.whole_files import write_whole
from blogdata.publish.contract import Contract

Position = tuple[str, int]
HOUR_FOLDER = re.compile(r"([^/]+)/date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/")


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
        found = self._hour_folder()
        return f"{found[2]}T{found[3]}"

    def _hour_folder(self) -> re.Match[str]:
        found = HOUR_FOLDER.match(self.source_file)
        if found is None:
            raise PlatformError(
                what=f"'{self.source_file}' is not a file of an hour of arrival",
                where="source_file",
                next_step="take source_file and source_offset from the dead letter as they are",
            )
        return found


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
    corrections, there = _last_ones(corrections), set(dead)
    unknown = sorted((one for one in corrections if one.position not in there), key=lambda one: one.position)
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
    unflagged = [one for one in corrections if not (landing / one.folder / FLAG).is_file()]
    # Without flags it is enough that the hour has been published, which its dead letters prove.
    if unflagged and convention == "flag":
        raise PlatformError(
            what=f"the hour of {unflagged[0].source_file} has no {FLAG}",
            where=str(landing),
            next_step="wait for the producer, or put the flag there once the files are whole",
        )


def _place(correction: Correction) -> str:
    kind = "log" if extension(correction.source_file) == "log" else "json"
    # A stream reads no name twice.
    payload = hashlib.sha256(correction.payload.encode()).hexdigest()[:16]
    return f"{correction.folder}{_stem(correction.position)}-{payload}.{kind}"


def _content(correction: Correction, landing: Path) -> bytes:
    """Return the corrected line; of a log, the `#Fields` line above the dead letter tells its columns."""
    file = landing / correction.source_file
    header = last_header(file, correction.source_offset) if extension(file.name) == "log" else ""
    return f"{header}\n{correction.payload}\n".removeprefix("\n").encode()


def _stem(position: Position) -> str:
    """Return the name prefix of every file that corrects the dead letter at a position."""
    return REPLAY_PREFIX + hashlib.sha256(f"{position[0]}:{position[1]}".encode()).hexdigest()[:16]


def _earlier(file: Path) -> Iterator[Path]:
    return file.parent.glob(f"{file.name[: len(_stem(('', 0)))]}*{file.suffix}")


def _write(file: Path, content: bytes) -> None:
    """Write a correction; an earlier one is overwritten, then renamed, so that there are never two files, or none."""
    for earlier in _earlier(file):
        write_whole(earlier, content)
        earlier.replace(file)
    if not file.exists():
        write_whole(file, content)
