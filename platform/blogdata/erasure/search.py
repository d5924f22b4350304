"""Searches all files of a deployment for values, whatever they are packed, compressed, encoded or escaped in.

An erasure that looks only where values are known to be proves nothing. So every byte of every file is searched: as it
is, and in all that :mod:`blogdata.erasure.content` unpacks. What cannot be read is named. No value is in the result.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from blogdata.erasure.content import layers
from blogdata.erasure.escapes import Escapes, unescaped
from blogdata.erasure.needles import PLAIN, Needles
from blogdata.erasure.readings import Unread
from blogdata.evidence.persons import Place

_PART = 64 << 20
_OVERLAP = 64 << 10
"""Bytes of the next part that each part is searched with, so that nothing is cut in two."""
_LARGEST = 1 << 30
"""Of a larger file only its own bytes are read, not what is packed into it."""
_SHORTEST = 4
"""A value of fewer bytes is a word of any text: what has it is not the person's for that."""
_SHORTEST_NUMBER = 8
"""The same of digits alone: sizes, counts and offsets in logs of tables and checkpoints are such words."""
NAME = "name of the file"
"""How a value is found that the name of a file, or of a folder above it, is or has."""
OTHER = "no declared place"
"""Where a value is that is in none of the places."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Values found in one file.

    Args:
        path: The file, below the home; a part that is or has a value is shown as `…`.
        how: What they were found in and in which form, such as `gzip, percent escapes`; `as it is` in the file itself.
    """

    path: str
    place: str
    how: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Unsearched:
    """A file, or a part of one, that was not searched."""

    path: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The result of a search.

    Args:
        bytes: Their size in bytes.
    """

    traces: tuple[Trace, ...]
    unsearched: tuple[Unsearched, ...]
    files: int
    bytes: int


def is_searched_for(value: str) -> bool:
    """Return whether a value is long enough to be a person's wherever it stands."""
    return len(value.encode()) >= (_SHORTEST_NUMBER if value.isdecimal() else _SHORTEST)


def search(
    home: Path,
    values: Iterable[str],
    places: Iterable[Place],
    *,
    elsewhere: Mapping[str, Path] = MappingProxyType({}),
) -> Searched:
    """Search a deployment's files for values.

    Args:
        places: The places that are declared to have values of persons (:func:`blogdata.evidence.persons.places`).
    """
    finder, known = _Finder(tuple(values)), tuple(places)
    traces: list[Trace] = []
    unsearched: list[Unsearched] = []
    files = size = 0
    for path, file in _files(home, elsewhere):
        shown = _shown(finder, path)
        place = next((each.name for each in known if each.has(path)), OTHER)
        if shown != path:
            traces.append(Trace(path=shown, place=place, how=NAME, count=1))
        found: Counter[str] = Counter()
        try:
            size += file.lstat().st_size
            for each in _found(finder, file):
                if isinstance(each, Unread):
                    unsearched.append(Unsearched(path=shown, why=each.why))
                else:
                    found += each
            files += 1
        except OSError as error:
            unsearched.append(Unsearched(path=shown, why=os.strerror(error.errno) if error.errno else "unreadable"))
        traces += [Trace(path=shown, place=place, how=how, count=count) for how, count in sorted(found.items())]
    return Searched(traces=tuple(traces), unsearched=tuple(unsearched), files=files, bytes=size)


class _Finder:
    """Counts values in bytes, as they are and behind escapes."""

    def __init__(self, values: Sequence[str]) -> None:
        self._needles, self._escapes = Needles(values), Escapes(values)

    def count(self, content: bytes) -> Counter[str]:
        """Count the values by the form in which they are; those that escapes leave alone count once."""
        found = self._needles.count(content)
        near = self._escapes.near(content)
        seen = self._needles.count(near).total()
        for how, text in unescaped(near):
            if (more := self._needles.count(text).total() - seen) > 0:
                found[how] += more
                seen += more
        return found


def _files(home: Path, elsewhere: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """List all files, each once: those of another folder by its name, also if it lies within the home."""
    apart = {os.path.realpath(folder) for folder in elsewhere.values()}
    for name, root in {"": home, **elsewhere}.items():
        for folder, folders, files in os.walk(root):
            links = [each for each in folders if (Path(folder) / each).is_symlink()]
            folders[:] = sorted(each for each in folders if os.path.realpath(Path(folder) / each) not in apart)
            for file in (Path(folder) / each for each in sorted([*files, *links])):
                yield "/".join(filter(None, (name, file.relative_to(root).as_posix()))), file


def _shown(finder: _Finder, path: str) -> str:
    def has_value(part: str) -> bool:
        return bool(finder.count(part.encode("utf-8", "surrogateescape")))

    return "/".join("…" if has_value(part) else part for part in path.split("/"))


def _found(finder: _Finder, file: Path) -> Iterator[Counter[str] | Unread]:
    if file.is_symlink():
        # What it leads to is searched where it is, if that is part of the deployment.
        yield _named("link", finder.count(os.fsencode(file.readlink())))
        return
    if not file.is_file():
        yield Unread("it is no regular file")
        return
    with file.open("rb") as opened:
        if os.fstat(opened.fileno()).st_size == 0:
            return
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            for begin in range(0, len(mapped), _PART):
                yield finder.count(mapped[begin : begin + _PART + _OVERLAP])
            if len(mapped) > _LARGEST:
                yield Unread(f"what is packed in it: it has more than {_LARGEST >> 20} MiB")
                return
            content = mapped[:]
    for layer in layers(content):
        yield layer if isinstance(layer, Unread) else _named(layer.how, finder.count(layer.data))


def _named(how: str, found: Counter[str]) -> Counter[str]:
    return Counter({how if form == PLAIN else f"{how}, {form}": count for form, count in found.items()})
