"""A law: however logs are rotated and landed, the hours equal those of landing all lines once."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from blogdata.cli.land_commands import app
from blogdata.landing.log_formats import formats
from blogdata.landing.log_splitter import PART, split_all
from landing.growing_logs import Killed

START = datetime(2026, 3, 1, 22, 40, tzinfo=timezone.utc)
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}
KEPT = 3


class Server:
    """A web server that writes access logs, and a program that rotates them."""

    def __init__(self, folder: Path, site: str, kind: str, chance: random.Random) -> None:
        self.log = folder / site / "access.log"
        self.log.parent.mkdir(parents=True)
        self.log.touch()
        self.written = b""
        self._site, self._kind, self._chance = site, kind, chance
        self._time = START
        self._rest = b""
        self._number, self._moments = count(), count()

    @property
    def files(self) -> list[Path]:
        return sorted(self.log.parent.glob("access.log*"))

    def write(self, lines: int, *, whole: bool = True) -> None:
        """Append lines; write the last one only in part unless `whole` is set."""
        for _ in range(lines):
            self._time += timedelta(seconds=self._chance.choice([0, 1, 300, 1500]))
            stamp = f"{self._time:%d/%b/%Y:%H:%M:%S +0000}"
            line = (
                f'192.0.2.1 - - [{stamp}] "GET /{self._site}/{next(self._number)} HTTP/1.1" 200 5 "-" "Firefox/1.0"\n'
            )
            self._append(self._rest + line.encode())
            self._rest = b""
        if lines and not whole:
            data = self.log.read_bytes()
            self._rest = data[-9:]
            os.truncate(self.log, len(data) - len(self._rest))
            self.written = self.written[: -len(self._rest)]

    def rotate(self, between: Callable[[], None]) -> None:
        """Rotate the log; `between` runs while there are two copies of it, before the new log has a line."""
        self._append(self._rest)
        self._rest = b""
        if self._kind == "dateext":
            self.log.rename(self.log.with_name(f"access.log-{self._time:%Y%m%d}-{next(self._number)}"))
        else:
            self._shift()
            first = self.log.with_name("access.log.1")
            if self._kind == "copytruncate":
                shutil.copy2(self.log, first)
                if self._chance.random() < 0.5:
                    between()
                os.truncate(self.log, 0)
            else:
                self.log.rename(first)
        self.log.touch()
        if self._chance.random() < 0.5:
            between()
        rotated = sorted(self.files, key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for old in [file for file in rotated if file != self.log][KEPT:]:
            old.unlink()

    def _shift(self) -> None:
        rotated = {int(file.name.split(".")[2]): file for file in self.files if file != self.log}
        for number in sorted(rotated, reverse=True):
            file = rotated[number]
            target = file.with_name(file.name.replace(f".log.{number}", f".log.{number + 1}"))
            file.rename(target)
            if self._kind == "compressed" and target.suffix not in PACK:
                suffix = self._chance.choice([*PACK])
                packed = target.with_name(target.name + suffix)
                packed.write_bytes(PACK[suffix](target.read_bytes()))
                shutil.copystat(target, packed)
                target.unlink()

    def _append(self, data: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(data)
        self.written += data
        # Every write has a different time.
        moment = int(self._time.timestamp()) * 10**9 + next(self._moments)
        os.utime(self.log, ns=(moment, moment))


@contextmanager
def dying(patch: pytest.MonkeyPatch, at: int) -> Iterator[None]:
    """Kill the process before or after one of its durable writes."""
    steps = count(1)

    def killing(step: Callable[..., object]) -> Callable[..., object]:
        def stepped(*given: object, **named: object) -> object:
            if next(steps) == at:
                raise Killed
            done = step(*given, **named)
            if next(steps) == at:
                raise Killed
            return done

        return stepped

    with patch.context() as patched:
        for holder, name in ((Path, "replace"), (os, "fsync"), (os, "utime")):
            patched.setattr(holder, name, killing(getattr(holder, name)))
        yield


def by_hour(landing: Path, site: str) -> dict[str, bytes]:
    """Map each hour to the lines of a site, in the order in which they were read."""
    found: dict[str, list[tuple[str, str, int, Path]]] = defaultdict(list)
    for path in landing.glob("visits/*/*/*.log"):
        log, taken, offset = re.findall(PART, path.name)[0]
        found[f"{path.parent.parent.name[5:]}T{path.parent.name[5:]}"].append((taken, log, int(offset), path))
    lines = {
        hour: [line for *_, path in sorted(parts) for line in path.read_bytes().splitlines(keepends=True)]
        for hour, parts in found.items()
    }
    ours = {hour: b"".join(line for line in each if f"GET /{site}/".encode() in line) for hour, each in lines.items()}
    return {hour: each for hour, each in ours.items() if each}


def land(landing: Path, files: list[Path], now: datetime) -> None:
    """Land files and split them into hours, as an hourly command and run do."""
    places = {"BLOGDATA_HOME": str(landing.parent / "home"), "BLOGDATA_LANDING": str(landing)}
    landed = CliRunner().invoke(app, ["logs", *map(str, files)], env=places)
    assert landed.exit_code == 0, landed.output
    assert [done for _, done in split_all(landing, formats(), now=now) if isinstance(done, Exception)] == []


@pytest.mark.matrix(100)
@pytest.mark.parametrize("kind", ["rename", "copytruncate", "dateext", "compressed"])
def test_hourly_landings_of_rotated_logs_equal_one_landing_of_all_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    chance = random.Random(kind)
    landing, once = tmp_path / "landing", tmp_path / "once"
    servers = {site: Server(tmp_path / "server", site, kind, chance) for site in ("a", "b")}
    now = (START + timedelta(days=60, minutes=minute) for minute in count())

    def cron() -> None:
        files = [file for server in servers.values() for file in server.files]
        chance.shuffle(files)
        if chance.random() < 0.5:
            with dying(monkeypatch, chance.randrange(1, 60)), suppress(Killed):
                land(landing, files, next(now))
        for _ in range(chance.randrange(1, 3)):
            land(landing, files, next(now))

    for _ in range(10):
        for _ in range(chance.randrange(1, 4)):
            for server in servers.values():
                server.write(chance.randrange(4), whole=chance.random() < 0.7)
            cron()
        for server in servers.values():
            # Written after the last landing, so that only the rotated log has it.
            server.write(chance.randrange(3))
            server.rotate(cron)
    cron()
    for site, server in servers.items():
        whole = tmp_path / f"{site}.log"
        whole.write_bytes(server.written)
        land(once, [whole], next(now))
        assert by_hour(landing, site) == by_hour(once, site)
        assert b"".join(each for _, each in sorted(by_hour(landing, site).items())) == server.written


def lines(first: int, end: int) -> bytes:
    times = [f"{START + timedelta(seconds=7 * at):%d/%b/%Y:%H:%M:%S +0000}" for at in range(first, end)]
    requests = enumerate(times, start=first)
    return b"".join(f'192.0.2.1 - - [{time}] "GET /a/{at} HTTP/1.1" 200 5 "-" "-"\n'.encode() for at, time in requests)


def taken(landing: Path) -> bytes:
    return b"".join(each for _, each in sorted(by_hour(landing, "a").items()))


def test_equal_lines_around_a_rotation_count_twice(tmp_path: Path) -> None:
    landing, now = tmp_path / "landing", START + timedelta(days=9)
    old, current = tmp_path / "access.log.1", tmp_path / "access.log"
    again = lines(100, 101) * 3
    old.write_bytes(lines(0, 100) + again)
    current.write_bytes(again + lines(101, 120))
    land(landing, [old, current], now)
    assert taken(landing) == old.read_bytes() + current.read_bytes()


def test_logs_of_two_sites_that_begin_with_the_same_lines_are_two_once_they_differ(tmp_path: Path) -> None:
    landing, now = tmp_path / "landing", START + timedelta(days=9)
    sites = [tmp_path / name for name in ("one.log", "other.log")]
    for number, tails in enumerate(((b"", b""), (lines(5, 6), lines(6, 7)), (lines(5, 9), lines(6, 8)))):
        for site, tail in zip(sites, tails, strict=True):
            site.write_bytes(lines(0, 2) + tail)
        land(landing, sites, now + timedelta(minutes=number))
    expected = b"".join(site.read_bytes() for site in sites).splitlines()
    assert sorted(taken(landing).splitlines()) == sorted(expected)
