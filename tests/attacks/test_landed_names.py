"""Generated files in an hour: each line is published, or its hour is held with a reason; other hours are published.

What should happen to a file follows from how it was generated; plain Python counts independently.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from blogdata.errors import shown
from blogdata.planning import arrivals
from blogdata.services.spark_connect import SparkServer
from lineage.deployment import Deployment, event
from quality.contracts import GRAPH, LANDED
from unprivileged import give_away, readable_folder, unprivileged

MARK = b"\xef\xbb\xbf"
LONGEST, LARGEST = 64 << 10, 1 << 20
PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "gzip of two members": lambda content: gzip.compress(content[:7], mtime=0) + gzip.compress(content[7:], mtime=0),
    "bzip2": bz2.compress,
    "bzip2 of two streams": lambda content: bz2.compress(content[:7]) + bz2.compress(content[7:]),
    "xz": lzma.compress,
    "zstd": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
}
SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "text in UTF-16": lambda content: "\ufeffa\n".encode("utf-16-le") + content,
    "compressed twice": lambda content: gzip.compress(bz2.compress(content)),
    "a zip archive": lambda content: b"PK\x03\x04" + content,
    "cannot be read to its end": lambda content: gzip.compress(os.urandom(64) + content)[:-12],
    "cannot be read": lambda content: lzma.compress(content) + b"what follows",
    f"a line of more than {LONGEST:,} bytes": lambda content: content + b"x" * (LONGEST + 1),
    f"more than {LARGEST:,} decompressed bytes": lambda content: gzip.compress(b"x\n" * LARGEST + content),
}


@dataclass(frozen=True)
class Made:
    """A generated file: its name and bytes, the lines it contains, or the reason why it holds its hour."""

    name: bytes
    content: bytes = field(repr=False)
    lines: tuple[bytes, ...] = field(default=(), repr=False)
    mark: bool = False
    held: str | None = None
    mode: int = 0o644

    @property
    def hidden(self) -> bool:
        return any(part[:1] in (b"_", b".") for part in self.name.split(b"/"))

    def write(self, folder: Path) -> None:
        path = folder / os.fsdecode(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.held == "is neither a file nor a folder":
            os.mkfifo(path)
        else:
            path.write_bytes(self.content)
            path.chmod(self.mode)

    def rows(self, folder: str) -> Iterator[tuple[str, int, bytes]]:
        offset = 0
        for number, line in enumerate(self.lines):
            yield f"{folder}/{os.fsdecode(self.name)}", offset, line
            offset += len(line) + 1 + (len(MARK) if self.mark and not number else 0)


CHARACTERS = "abB[]{}*?:\\ %25é#+,;'\"`$&=~!^|<>()@\n\t-"
STEMS = st.sampled_from(
    ["a[b]", "ab", "{p,q}", "p", "x*", "xy", "co:lon", "2026-01-05T04:00:00", "back\\slash", "a%5Bb"]
)
ENDINGS = st.sampled_from(
    [".json", ".json", "", ".GZ", ".gz", ".json.bz2", ".zst", ".deflate", ".json._COPYING_", ".log"]
)
NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "", "part.json/", "d/date=2026-01-05/hour=09/", "_temporary/"]),
    STEMS | st.text(CHARACTERS, min_size=1, max_size=8) | st.sampled_from([".hidden", "_SUCCESS2"]),
    ENDINGS,
).map(str.encode)
LINES = st.lists(
    st.builds(lambda minute, page: event(f"04:{minute:02}", page), st.integers(0, 59), st.sampled_from("abc"))
    | st.sampled_from([b"", b"x no json", b"x\xff\xfe\r", b'{"a": 1}', MARK + b"x"]),
    max_size=5,
)


@st.composite
def good(draw: st.DrawFn) -> Made:
    lines, mark = tuple(draw(LINES)), draw(st.booleans())
    text = b"".join(line + b"\n" for line in lines)
    if lines and lines[-1] and draw(st.booleans()):
        text = text[:-1]
    # An existing marker counts, whoever wrote it.
    if not mark and text.startswith(MARK):
        lines, mark = (lines[0].removeprefix(MARK), *lines[1:]), True
    elif mark:
        text = MARK + text
    content = PACK[draw(st.sampled_from(sorted(PACK)))](text)
    return Made(name=draw(NAMES), content=content, lines=lines, mark=mark)


@st.composite
def bad(draw: st.DrawFn) -> Made:
    kind, name = draw(st.sampled_from([*SPOILED, "name", "mode", "fifo"])), draw(NAMES)
    content = event("04:00", "never")
    if kind == "name":
        return Made(name=name + b"caf\xe9.json", content=content, held="a name that is not UTF-8")
    if kind == "mode":
        return Made(name=name, content=content, held="Permission denied", mode=0)
    if kind == "fifo":
        return Made(name=name, content=b"", held="is neither a file nor a folder")
    return Made(name=name, content=SPOILED[kind](content), held=kind)


def one_of_each_name(files: Sequence[Made]) -> list[Made]:
    """Leave out files whose path is taken by a file of that name, or by a file in place of a folder."""
    kept: dict[bytes, Made] = {}
    for file in files:
        ways = {file.name[: at + 1].rstrip(b"/") for at, byte in enumerate(file.name) if byte == ord("/")}
        folders = {name[:at] for name in kept for at, byte in enumerate(name) if byte == ord("/")}
        if file.name not in kept and not ways & kept.keys() and file.name not in folders:
            kept[file.name] = file
    return list(kept.values())


GOOD = st.lists(good(), min_size=1, max_size=8).map(one_of_each_name)
BAD = st.tuples(st.lists(good(), max_size=3), st.lists(bad(), min_size=1, max_size=2)).map(
    lambda parts: one_of_each_name([*parts[1], *parts[0]])
)
HOURS = st.tuples(*[GOOD] * 4, *[BAD] * 4).filter(lambda hours: len({len(files) for files in hours}) > 3)
"""Eight hours with different numbers of files: not the simplest example, which is always the first."""


@pytest.fixture(scope="module")
def world(spark_server: SparkServer) -> Iterator[Deployment]:
    """A deployment of an unprivileged user, whom file permissions stop."""
    with readable_folder() as folder:
        made = Deployment.create(folder / "home", spark_server.url)
        with (made.settings.home / "blogdata.toml").open("a") as file:
            file.write('[landing]\nlongest_line = "64k"\nlargest_file = "1m"\n')
        # Run once as the superuser: modules imported on the way may lie in folders that other users cannot read.
        for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
            codecs.lookup(encoding)
        made.land("2026-01-04T10", [event("10:00", "first")])
        assert made.run(for_=["bronze.dead_letters"]).problems == []
        give_away(folder)
        yield made
        made.close()


days = iter(range(5, 29))


@given(HOURS)
@settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_each_line_is_published_or_its_hour_held_with_the_reason(
    world: Deployment, example: tuple[list[Made], ...]
) -> None:
    day = f"2025-12-{next(days):02}"
    hours = {f"{day}T{10 + number}": files for number, files in enumerate(example)}
    for hour, files in hours.items():
        folder = world.folder(hour)
        folder.mkdir(parents=True)
        for file in files:
            file.write(folder)
        (folder / "_SUCCESS").touch()
    with unprivileged():
        outcome = world.run(for_=["bronze.dead_letters"])
        world.outstanding()
        waiting = world.planner.waiting(GRAPH.task_of("bronze.visits"))
        refused = [str(error) for error in arrivals.refusals(LANDED.values(), world.landing)]
    published = world.published("bronze.visits")
    assert world.problems() == []
    for hour, files in hours.items():
        data = [file for file in files if not file.hidden]
        held = [file for file in data if file.held]
        assert (hour in published) == (not held), (hour, [problem[:300] for problem in outcome.problems][-6:], files)
        if held:
            of_hour = [text for text in refused if str(world.folder(hour)) in text]
            reasons = of_hour or [str(waiting[hour])]
            names = [shown.line(file.name.decode("utf-8", "backslashreplace")) for file in held]
            assert any(file.held in text for file in held for text in reasons if file.held), (reasons, held)
            assert any(name in text for name in names for text in reasons), (reasons, names)
        found = Counter(rows_of(world, "bronze.visits", hour))
        place = str(world.folder(hour).relative_to(world.landing))
        assert found == Counter(row for file in data if not held for row in file.rows(place))
        usable = published[hour].measures["visits"] + published[hour].measures["filtered"] if not held else 0
        assert len(rows_of(world, "bronze.dead_letters", hour)) + usable == found.total()


def rows_of(world: Deployment, dataset: str, hour: str) -> list[tuple[str, int, bytes]]:
    rows = world.rows(dataset, "arrival_hour", "source_file", "source_offset", "raw")
    return [(file, offset, bytes(raw)) for arrival, file, offset, raw in rows if arrival == hour]
