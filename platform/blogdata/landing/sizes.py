"""Counts the lines and bytes of landed files without Spark, and judges the files.

The ledger compares what was published with these counts, file by file. No file is read for its lines that cannot be
read to its end or exceeds the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from blogdata.errors import PlatformError
from blogdata.landing.landed_formats import HEAD, MARK, content, foreign
from blogdata.landing.landed_links import require_within
from blogdata.landing.lines import FILLER, LONGEST, Bounds, faults_of, is_erased
from blogdata.landing.lines import lines as landed_lines

CHUNK = 1 << 20
_RAISE = "have the file landed again, mended, or raise the setting landing."


class LandedFileRefused(PlatformError):
    """Raised when a landed file is in a format that is not read, or exceeds the bounds of the configuration."""


@dataclass(frozen=True, kw_only=True)
class LandedSize:
    """Lines of a file, erased ones as well, and its bytes without a mark and as if the last line had a line feed."""

    lines: int
    bytes: int
    erased: int = 0
    erased_bytes: int = 0

    def __add__(self, other: LandedSize) -> LandedSize:
        return LandedSize(
            lines=self.lines + other.lines,
            bytes=self.bytes + other.bytes,
            erased=self.erased + other.erased,
            erased_bytes=self.erased_bytes + other.erased_bytes,
        )

    @property
    def of_rows(self) -> tuple[int, int]:
        """Lines that are rows, and their bytes."""
        return self.lines - self.erased, self.bytes - self.erased_bytes


def measure(file: Path, bounds: Bounds = Bounds()) -> LandedSize:
    """Count the lines and bytes of a file, plain or compressed, in constant memory, as they will be read."""
    lines = total = unfinished = 0
    may_be_erased = False
    with faults_of(file), content(file) as stream:
        # No line within a chunk is too long, so only lines that span chunks have to be measured.
        size = min(CHUNK, bounds.longest_line)
        chunk = _first(stream, size)
        if (named := foreign(chunk)) is not None:
            raise _refused(
                file, f"is {named}", "land text in UTF-8, plain or compressed once by gzip, bzip2, xz or zstd"
            )
        chunk = chunk.removeprefix(MARK)
        while chunk:
            feeds = chunk.count(b"\n")
            longest = unfinished + (chunk.find(b"\n") if feeds else len(chunk))
            unfinished = len(chunk) - chunk.rfind(b"\n") - 1 if feeds else longest
            lines += feeds
            total += len(chunk)
            may_be_erased = may_be_erased or FILLER in chunk
            if max(longest, unfinished) > bounds.longest_line:
                raise _refused(file, f"has a line of more than {bounds.longest_line:,} bytes", _RAISE + "longest_line")
            if total > bounds.largest_file:
                raise _refused(
                    file, f"has more than {bounds.largest_file:,} decompressed bytes", _RAISE + "largest_file"
                )
            chunk = stream.read(size)
    # A last line without a line feed is a line too.
    last = int(unfinished > 0)
    with faults_of(file):
        erased, erased_bytes = count_erased(file) if may_be_erased else (0, 0)
    return LandedSize(lines=lines + last, bytes=total + last, erased=erased, erased_bytes=erased_bytes)


def count_erased(file: Path) -> tuple[int, int]:
    """Count the erased lines of a file, and their bytes as if the last line ended in a line feed, too."""
    sizes = [len(raw) + 1 for _, raw in landed_lines(file, LONGEST) if is_erased(raw)]
    return len(sizes), sum(sizes)


def _first(stream: IO[bytes], size: int) -> bytes:
    """Read the first chunk, at least as long as what identifies a format, if the content is."""
    chunk = stream.read(size)
    while len(chunk) < HEAD and (more := stream.read(HEAD)):
        chunk += more
    return chunk


def _refused(file: Path, why: str, next_step: str) -> LandedFileRefused:
    return LandedFileRefused(
        what=f"a landed file is not read: it {why}",
        where=str(file),
        next_step=f"nothing was published of its partition; {next_step}",
    )


def judge_all(files: Sequence[Path], root: Path, bounds: Bounds = Bounds()) -> list[LandedSize | PlatformError]:
    """Measure several files in parallel; each has its size, or the error that :func:`measure` raised."""
    require_within(files, root)

    def judged(file: Path) -> LandedSize | PlatformError:
        try:
            return measure(file, bounds)
        except PlatformError as error:
            return error

    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(judged, files))


def measure_all(files: Sequence[Path], root: Path, bounds: Bounds = Bounds()) -> list[LandedSize]:
    sizes = []
    for size in judge_all(files, root, bounds):
        if isinstance(size, PlatformError):
            raise size
        sizes.append(size)
    return sizes
