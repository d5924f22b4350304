"""A run that a person or the system stops."""

from __future__ import annotations

import os
import signal
import time

import pytest

from blogdata.contract.publication import Commit
from blogdata.ledger.events import EventLog
from lineage.command_line import Said
from lineage.conftest import Deploy
from lineage.deployment import event

NEEDED = ("run", "--for", "silver.visits")
REST = f"stopped; what was published stays; for the rest run again: blogdata {' '.join(NEEDED)}\n"


def stay() -> None:
    """Work for a minute, as a step that waits for Spark: each wait is short."""
    for _ in range(600):
        time.sleep(0.1)


def test_an_interrupted_run_is_completed_by_the_next(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = deploy("interrupted")
    made.land("2026-01-05T10", [event("10:05", "/a"), event("10:06", "/b")])
    monkeypatch.setenv("BLOGDATA_HOME", str(made.settings.home))
    said = Said(monkeypatch, capsys)
    record = EventLog.record
    for asked, dataset in ((signal.SIGTERM, "bronze.visits"), (signal.SIGINT, "silver.visits")):

        def interrupted(log: EventLog, commit: Commit, asked: int = asked, dataset: str = dataset) -> None:
            if commit.dataset == dataset:
                os.kill(os.getpid(), asked)
                stay()
            record(log, commit)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(EventLog, "record", interrupted)
            code, _, err = said(*NEEDED)
        assert (code, err) == (130, REST)
    assert said(*NEEDED, "--json")[0] == 0
    assert made.run(for_=["silver.visits"]).runs == 0
    assert made.problems() == []
    assert sorted(made.rows("silver.visits", "page")) == ["/a", "/b"]
