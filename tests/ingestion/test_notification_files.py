"""External Trigger: a notification file in the landing zone is an event, exactly once."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from blogdata.patterns.ingestion import notification_files
from blogdata.patterns.ingestion.external_trigger import Trigger
from blogdata.patterns.ingestion.landed_links import LinkRefused
from blogdata.patterns.ingestion.notification_files import FOLDER, Unreadable, take_files
from blogdata.patterns.ingestion.readiness_marker import scan
from blogdata.patterns.ingestion.trigger_event import MOST_BYTES, Malformed, NotPermitted, TooLarge, WrongTime
from blogdata.planning.history import span
from blogdata.publish.partitions import Grain
from published import deployment
from toy_trigger import EVENT, NOW, event
from unprivileged import give_away, readable_folder, unprivileged


@pytest.fixture
def notify(tmp_path: Path) -> Callable[..., Path]:
    """Writes a notification file as a partner does: under a hidden name, then renamed."""

    def write(name: str = "a.json", *, at: datetime = NOW, body: bytes | None = None, **changes: Any) -> Path:
        folder = tmp_path / "landing" / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f".{name}"
        file.write_bytes(json.dumps(event(source="partner", **changes)).encode() if body is None else body)
        os.utime(file, (at.timestamp(), at.timestamp()))
        return file.replace(folder / name)

    return write


def test_a_file_is_an_event_once(trigger: Trigger, notify: Callable[..., Path], tmp_path: Path) -> None:
    notify()
    for _ in range(2):
        assert take_files(trigger, tmp_path / "landing") == []
    (entry,) = trigger.inbox.waiting()
    assert (entry.channel, entry.origin) == ("file", "_events/a.json")
    notify("b.json")
    take_files(trigger, tmp_path / "landing")
    assert len(trigger.inbox.waiting()) == 1, "the same event under another name"


def test_a_file_may_wait_for_days(trigger: Trigger, notify: Callable[..., Path], tmp_path: Path) -> None:
    # The daemon was down; the event's age is that of the file.
    notify(at=NOW)
    assert take_files(trigger, tmp_path / "landing") == []
    notify("b.json", at=NOW + timedelta(days=2), id="43")
    assert [type(error) for error in take_files(trigger, tmp_path / "landing")] == [WrongTime]


def test_a_folder_that_cannot_be_read_is_named_and_stops_nothing(
    trigger: Trigger, notify: Callable[..., Path], tmp_path: Path
) -> None:
    with readable_folder() as landing:
        (landing / FOLDER).mkdir()
        notify().rename(landing / FOLDER / "a.json")
        give_away(landing)
        (landing / FOLDER).chmod(0)
        with unprivileged():
            (refused,) = take_files(trigger, landing)
        (landing / FOLDER).chmod(0o755)
        assert (type(refused), refused.where) == (Unreadable, FOLDER)
        assert take_files(trigger, landing) == []
    assert len(trigger.inbox.waiting()) == 1


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_replacement_of_a_listed_file_is_not_read(
    trigger: Trigger, notify: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file = notify()
    listed = notification_files._found

    def replaced(folder: Path) -> Any:
        found = list(listed(folder))
        file.rename(tmp_path / "elsewhere")
        if kind == "link":
            file.symlink_to(tmp_path / "elsewhere")
        else:
            os.mkfifo(file)
        return found

    monkeypatch.setattr(notification_files, "_found", replaced)
    (refused,) = take_files(trigger, tmp_path / "landing")
    assert isinstance(refused, Unreadable if kind == "link" else Malformed)
    assert trigger.inbox.waiting() == []


def test_a_half_written_file_is_read_again(trigger: Trigger, notify: Callable[..., Path], tmp_path: Path) -> None:
    notify(body=b'{"id": ')
    assert [type(error) for error in take_files(trigger, tmp_path / "landing")] == [Malformed]
    assert take_files(trigger, tmp_path / "landing") == [], "refused once"
    notify()
    take_files(trigger, tmp_path / "landing")
    assert len(trigger.inbox.waiting()) == 1


def test_a_file_that_cannot_be_read_is_tried_again(
    trigger: Trigger, notify: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notify("a.json")
    notify("b.json", id="43")
    opened = notification_files._itself

    def failing(path: Path) -> int:
        if path.name == "a.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path)

    monkeypatch.setattr(notification_files, "_MOST_AT_ONCE", 1)
    with monkeypatch.context() as broken:
        broken.setattr(notification_files, "_itself", failing)
        for _ in range(2):
            (error,) = take_files(trigger, tmp_path / "landing")
            assert isinstance(error, Unreadable)
            assert "a.json cannot be read: Input/output error" in error.what
        assert [entry.event.id for entry in trigger.inbox.waiting()] == ["43"], "it does not block other files"
    assert take_files(trigger, tmp_path / "landing") == []
    assert len(trigger.inbox.waiting()) == 2


@pytest.mark.parametrize(
    ("written", "kind"),
    [(1e12, Malformed), (1e300, Malformed), (253402300799.0, WrongTime), (-62135596800.0, WrongTime)],
)
def test_a_file_of_an_impossible_time_stops_no_other(
    trigger: Trigger,
    notify: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: float,
    kind: type[Exception],
) -> None:
    notify("a.json")
    notify("b.json", id="43")
    found = notification_files._found

    def found_with_an_odd_one(folder: Path) -> dict[str, Any]:
        files = dict(found(folder))
        return {**files, "a.json": replace(files["a.json"], written=written)}

    # Few file systems can store such times.
    monkeypatch.setattr(notification_files, "_found", found_with_an_odd_one)
    assert [type(error) for error in take_files(trigger, tmp_path / "landing")] == [kind]
    assert [entry.event.id for entry in trigger.inbox.waiting()] == ["43"]
    assert take_files(trigger, tmp_path / "landing") == [], "refused once"


def test_a_file_of_a_calling_sender_is_refused(trigger: Trigger, notify: Callable[..., Path], tmp_path: Path) -> None:
    notify(body=json.dumps(EVENT).encode())
    assert [type(error) for error in take_files(trigger, tmp_path / "landing")] == [NotPermitted]


def test_hidden_large_and_linked_files_start_nothing(
    trigger: Trigger, notify: Callable[..., Path], tmp_path: Path
) -> None:
    for name in (".a.json", "_b.json", "c.txt"):
        notify(name, id=name)
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(event(source="partner")), encoding="utf-8")
    (tmp_path / "landing" / FOLDER / "link.json").symlink_to(outside)
    notify("large.json", body=b" " * (MOST_BYTES + 1))
    assert [type(error) for error in take_files(trigger, tmp_path / "landing")] == [TooLarge]
    assert trigger.inbox.waiting() == []


def test_no_folder_behind_a_stray_link_is_read(trigger: Trigger, notify: Callable[..., Path], tmp_path: Path) -> None:
    notify()
    other = tmp_path / "other"
    other.mkdir()
    (other / FOLDER).symlink_to(tmp_path / "landing" / FOLDER)
    with pytest.raises(LinkRefused):
        take_files(trigger, other)


def test_a_file_name_need_not_be_utf8(trigger: Trigger, notify: Callable[..., Path], tmp_path: Path) -> None:
    notify(os.fsdecode(b"\xff.json"))
    assert take_files(trigger, tmp_path / "landing") == []
    assert [entry.origin for entry in trigger.inbox.waiting()] == ["_events/\\xff.json"]


def test_files_that_are_gone_are_forgotten(trigger: Trigger, notify: Callable[..., Path], tmp_path: Path) -> None:
    file = notify()
    take_files(trigger, tmp_path / "landing")
    assert list(trigger.inbox.files()) == ["a.json"]
    file.unlink()
    take_files(trigger, tmp_path / "landing")
    assert trigger.inbox.files() == {}


def test_notification_files_are_no_landed_data(notify: Callable[..., Path], tmp_path: Path) -> None:
    home = deployment(tmp_path / "home")
    empty = span(home.landing_path, home.events)
    (home.landing_path / FOLDER).mkdir()
    (home.landing_path / FOLDER / "a.json").write_text("{}", encoding="utf-8")
    assert span(home.landing_path, home.events) == empty
    assert scan(home.landing_path / FOLDER, Grain.HOUR) == []
