"""A process is identified independently of the clock."""

from __future__ import annotations

import os
from dataclasses import replace

import psutil
import pytest

from blogdata.operate import processes


@pytest.mark.parametrize("seconds", [-3600, -1, 1, 3600])
def test_a_clock_change_keeps_a_process_identity(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    before, began = processes.identify(os.getpid()), psutil.Process().create_time()
    booted = psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + seconds)
    assert psutil.Process().create_time() == pytest.approx(began + seconds)
    assert processes.identify(os.getpid()) == before
    assert processes.is_alive(before)


def test_a_reused_process_number_is_another_process() -> None:
    mine = processes.identify(os.getpid())
    boot, since = mine.created.split("+")
    assert not processes.is_alive(replace(mine, created=f"{boot}+{float(since) + 0.01:.2f}"))
    assert not processes.is_alive(replace(mine, created=f"{boot[::-1]}+{since}"))


def test_a_process_that_has_ended_is_not_alive() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    identity = processes.identify(child)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert not processes.is_alive(identity), "nobody has asked for its result yet"
    os.waitpid(child, 0)
    assert not processes.is_alive(identity)
