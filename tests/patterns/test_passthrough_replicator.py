import hashlib
import io
import subprocess
import sys
from pathlib import Path

import pytest

from blogdata.errors import TransientError
from blogdata.landing import passthrough_replicator
from blogdata.landing.passthrough_replicator import land, replicate
from landing.growing_logs import line


def test_a_replica_equals_its_source_byte_for_byte(tmp_path: Path) -> None:
    data = b'{"b": 1.0, "a": 1e3, "a": 2}\r\n\xff\xfe\x00 no line feed at the end'
    (tmp_path / "source").write_bytes(data)
    sha256 = replicate(tmp_path / "source", tmp_path / "deep" / "target")
    assert (tmp_path / "deep" / "target").read_bytes() == data
    assert sha256 == hashlib.sha256(data).hexdigest()


def test_a_corrupt_copy_never_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_bytes(b"new")
    (tmp_path / "target").write_bytes(b"old")
    monkeypatch.setattr("blogdata.landing.passthrough_replicator.sha256_of", lambda path: "0" * 64)
    with pytest.raises(TransientError, match="does not read back"):
        replicate(tmp_path / "source", tmp_path / "target")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"source": b"new", "target": b"old"}


def test_landing_a_log_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "._a.log").write_bytes(line(0))
    landed = [land(tmp_path / "._a.log", tmp_path / "access_logs") for _ in range(2)]
    assert [copy.outcome for copy in landed] == ["new", "same"]
    assert [file.name for file in (tmp_path / "access_logs").glob("[!.]*")] == ["a.log"], "no name is hidden"


def test_a_log_that_is_truncated_while_it_is_copied_does_not_land_and_one_that_grows_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, folder = tmp_path / "a.log", tmp_path / "access_logs"
    became: list[bytes] = []

    class Changing(io.FileIO):
        """The log, which the server changes after one block is read."""

        def read(self, size: int | None = -1) -> bytes:
            block = super().read(size)
            if became and size == 300 and self.tell() == len(block):
                log.write_bytes(became.pop(0))
            return block

    def landed(*states: bytes) -> bytes:
        log.write_bytes(states[0])
        became[:] = states[1:]
        return land(log, folder).path.read_bytes()

    monkeypatch.setattr(passthrough_replicator, "BLOCK", 300)
    opened = Path.open
    monkeypatch.setattr(
        Path, "open", lambda file, mode="r", *more: Changing(file) if mode == "rb" else opened(file, mode, *more)
    )
    first, second, third = (b"".join(line(at) for at in range(begin, begin + 40)) for begin in (0, 100, 200))
    assert landed(first[:-500], first) == first
    before = sorted(folder.iterdir())
    for truncated in (line(300), third):
        with pytest.raises(TransientError, match="truncated or rewritten"):
            landed(second, truncated)
        assert sorted(folder.iterdir()) == before, "never the beginning of one log and the end of another"


def test_processes_that_land_one_log_at_the_same_time_land_it_once(tmp_path: Path) -> None:
    log, folder = tmp_path / "a.log", tmp_path / "access_logs"
    log.write_bytes(b"".join(line(at) for at in range(20_000)))
    program = "import sys; from pathlib import Path; from blogdata.landing.passthrough_replicator import land\n"
    program += "print(land(*map(Path, sys.argv[1:])).outcome)"
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(log), str(folder)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert sorted(process.communicate()[0].strip() for process in started) == ["new", "same", "same"]
    assert [file.name for file in folder.glob("[a-z]*")] == ["a.log"]
