"""`blogdata stream` starts a requested new checkpoint only once, whatever interrupts its attempts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assets.streams.live_visits import STREAM
from blogdata.cli import stream_command
from blogdata.orchestration import stream as streams
from blogdata.orchestration.stream import Place, Stream
from blogdata.patterns.error_management.checkpointer import checkpoints, open_checkpoint
from blogdata.services import config
from blogdata.services.spark_probe import SparkServerLost
from resources import spark


class Attempts:
    """Simulates a server that fails at chosen attempts; records the request of each other attempt.

    Args:
        before: Attempts that fail before the stream is reached.
        within: Attempts that fail once its checkpoint is open.
    """

    def __init__(self, *, before: int, within: int) -> None:
        self._before, self._within = before, within
        self.numbers: list[int] = []

    @contextmanager
    def guard(self) -> Iterator[None]:
        if self._before:
            self._before -= 1
            raise self._lost()
        yield

    def run(self, session: Any, stream: Stream, place: Place, *, checkpoints: Path, **given: Any) -> None:
        made = open_checkpoint(checkpoints, stream.spec(place.landing), renew=given["new_checkpoint"])
        self.numbers.append(made.number)
        if len(self.numbers) <= self._within:
            raise self._lost()

    def _lost(self) -> SparkServerLost:
        return SparkServerLost(what="the server went away", where="here", next_step="run it again")


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("within", [0, 2])
@pytest.mark.parametrize("there", [0, 1])
def test_lost_servers_do_not_begin_a_second_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, within: int, there: int
) -> None:
    settings = config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})
    kept = settings.home / "checkpoints"
    for _ in range(there):
        open_checkpoint(kept, STREAM.spec(settings.landing))
    attempts = Attempts(before=before, within=within)
    monkeypatch.setattr(stream_command, "load", lambda: settings)
    monkeypatch.setattr(spark, "SparkResource", lambda home: attempts)
    monkeypatch.setattr(streams, "run", attempts.run)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(threading.Event, "wait", lambda *_: True)
    stream_command.stream(once=True, new_checkpoint=True)
    assert attempts.numbers == [there + 1] * (within + 1)
    assert [checkpoint.number for checkpoint in checkpoints(kept)] == list(range(1, there + 2))
