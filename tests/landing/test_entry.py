"""The suppression list, and landed lines of forgotten persons: what is theirs goes, and nothing else."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from blogdata.errors import PlatformError
from blogdata.landing import log_formats, log_splitter, suppression_list
from blogdata.landing.landed_persons import Identifiers
from blogdata.landing.lines import FILLER
from blogdata.landing.log_formats import LogReader, formats
from blogdata.landing.log_splitter import split_by_hour, unsplit_logs
from blogdata.landing.passthrough_replicator import land as replicate
from blogdata.landing.suppression_list import ListUnusable, SuppressionList
from blogdata.operate import config
from blogdata.operate.config import LogSettings, Settings
from landing.growing_logs import NOW, Killed, line

BOB = Identifiers(
    user_ids=frozenset({"user-bob-1"}),
    logins=frozenset({"bob"}),
    emails=frozenset({"bob@mail.example"}),
    visit_ids=frozenset({"visit-of-bob"}),
    addresses=frozenset({"9.9.9.9"}),
)
FORGOTTEN = datetime(2026, 5, 1, tzinfo=timezone.utc).timestamp()


@pytest.fixture
def home(tmp_path: Path) -> Settings:
    """A deployment in which Bob was forgotten."""
    (tmp_path / "home").mkdir()
    found = config.load(overrides={"BLOGDATA_HOME": str(tmp_path / "home")})
    SuppressionList.of(found).add(BOB, FORGOTTEN)
    return found


def land(home: Settings, name: str, lines: list[bytes]) -> Path:
    file = home.landing / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join(line + b"\n" for line in lines)
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return file


def left_of(home: Settings, name: str, lines: list[bytes]) -> list[bytes]:
    file = land(home, name, lines)
    suppression_list.erase_known(home, home.landing, [file])
    data = file.read_bytes()
    after = (gzip.decompress(data) if name.endswith(".gz") else data).split(b"\n")[:-1]
    assert [len(line) for line in after] == [len(line) for line in lines]
    return [line for line in after if line.strip(FILLER)]


def event(**more: Any) -> bytes:
    return json.dumps({"visit_id": "v", "user_id": "u", "event_time": "2026-04-01T10:00:00Z", **more}).encode()


def user(**more: Any) -> bytes:
    given = {"id": "u", "login": "l", "email": "e@x.example", "registered_datetime": "2025-01-01T00:00:00Z"}
    return json.dumps({**given, **more}).encode()


VISITS = "visits/date=2026-04-01/hour=10/visits.json"
USERS = "users/date=2026-04-01/users.json"
OF_BOB = [
    event(user_id="user-bob-1"),
    event(visit_id="visit-of-bob"),
    event(context={"user": {"login": "bob"}}),
    event(context={"user": {"ip": "9.9.9.9"}}),
    event(User_ID="user-bob-1"),
    event(VISIT_ID="visit-of-bob")[:-2],
    event(user_id="user-bob-1").replace(b"bob", b"b\\u006fb"),
    b'{"user_id": "user-bob-1", "user_id": "u"}',
    event(user_id="user-bob-1")[:-30],
    b"garbage user-bob-1 garbage",
    b"garbage?mail=bob%40mail.example",
    b"garbage bob\\u0040mail.example",
    b'\xff\xfe{"login": "bob"',
    event(user_id=["u", "user-bob-1"]),
    event(user_id={"$oid": "user-bob-1"}),
    event(context=json.dumps({"user": json.dumps({"login": "bob"})})),
]
OF_OTHERS = [
    event(),
    event(user_id="user-bob-11"),
    event(context={"user": {"login": "bobby"}}),
    event(page="/bob", context={"referral": "https://x.example/bob"}),
    event(user_id="bob"),
    event(login="user-bob-1"),
    event()[:-30],
    b"",
    b"{",
    b'{"bob": 1',
    event(page=["user-bob-1"]),
    event(context='{"page": "user-bob-1", "'),
    event(user_id=json.loads("[" * 400 + "]" * 400)),
]


def test_lines_of_a_person_go_and_those_of_others_stay(home: Settings) -> None:
    mixed = [line for pair in zip(OF_BOB, OF_OTHERS, strict=False) for line in pair] + OF_BOB[len(OF_OTHERS) :]
    assert left_of(home, VISITS, mixed) == [line for line in OF_OTHERS if line]
    assert left_of(home, f"{VISITS}.gz", mixed) == [line for line in OF_OTHERS if line]


def test_a_user_is_known_by_any_of_his_values(home: Settings) -> None:
    his = [user(id="user-bob-1"), user(login="bob"), user(email="bob@mail.example"), user(login="bob")[:-40]]
    assert left_of(home, USERS, [*his, user()]) == [user()]


def test_a_word_of_a_line_of_another_user_is_no_login(home: Settings) -> None:
    SuppressionList.of(home).add(Identifiers(logins=frozenset({"mobile"})), FORGOTTEN)
    cut = b'{"user_id": "user-ann-1", "page": "/x", "network": "mobile", "ip'
    lines = [cut, cut.replace(b'"user_id": "user-ann-1", ', b"")]
    assert left_of(home, VISITS, lines) == lines[:1]


@pytest.mark.parametrize("names", [["email", "id", "login"], ["Email", "ID", "LogIn"]])
def test_a_user_in_a_csv_is_known_by_the_header(home: Settings, names: list[str]) -> None:
    rows = [names, ["e", "bob", "l"], ['e;"', "user-bob-1", "l"], ["bob@mail.example", "u", "l"], ["e", "u", "bob"]]
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
    lines = text.getvalue().encode().splitlines()
    assert left_of(home, USERS.replace("json", "csv"), lines) == lines[:2]


@pytest.mark.parametrize("header", [b"id,login,email", b"user-bob-1;x;y", b"", b"a\rb;id"])
def test_a_csv_without_a_header_that_names_persons_is_searched_for_words(home: Settings, header: bytes) -> None:
    of_others = [b"user-bob-11;bobby;e@x.example", b"u;l\rm;e", b"u;l;" + b"x" * 200_000]
    his = [b"user-bob-1,x,y", b"u;l;bob@mail.example", b"u\r;user-bob-1;" + b"x" * 200_000]
    left = left_of(home, USERS.replace("json", "csv"), [header, *of_others, *his])
    assert left == [line for line in (header, *of_others) if line and b"user-bob-1;" not in line]


@pytest.mark.parametrize("row", [b"u\rv;l;e", b"u;l;" + b"x" * 200_000])
def test_a_row_that_cannot_be_read_stops_nothing(home: Settings, row: bytes) -> None:
    lines = [b"id;login;email", row, b"user-bob-1;l;e", b"u;l;e"]
    assert left_of(home, USERS.replace("json", "csv"), lines) == [lines[0], lines[1], lines[3]]


def test_requests_are_known_by_address_and_login(home: Settings) -> None:
    def asked(address: str = "1.1.1.1", login: str = "-", path: str = "/bob", behind: str = "-") -> bytes:
        return f'{address} - {login} [01/Apr/2026:10:00:00 +0000] "GET {path} HTTP/1.1" 200 1 "{behind}"'.encode()

    his = [asked("9.9.9.9"), asked(login="bob"), asked(path="/?m=bob@mail.example"), asked(behind="1.1.1.1, 9.9.9.9")]
    his.append(b'{"remote_addr": "9.9.9.9", "request": "GET /"}')
    others = [asked(), asked("9.9.9.98"), asked(login="bobby")]
    assert left_of(home, VISITS.replace(".json", ".log"), [*his, *others]) == others


def test_an_address_is_known_in_every_spelling(home: Settings) -> None:
    SuppressionList.of(home).add(Identifiers(addresses=frozenset({"2001:DB8::1", "198.51.100.7"})), FORGOTTEN)
    spellings = ("2001:db8:0::1", "[2001:0DB8::0001]:443", "2001:db8::1%eth0", "::ffff:198.51.100.7", "198.51.100.7:80")
    requests = [f'{one} - - [01/Apr/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1'.encode() for one in spellings]
    others = [one.replace(b"001", b"002").replace(b"::1", b"::2").replace(b".7", b".8") for one in requests]
    assert left_of(home, VISITS.replace(".json", ".log"), [*requests, *others]) == others
    events = [event(context={"user": {"ip": one}}) for one in (*spellings, "2001:db8::2")]
    assert left_of(home, VISITS, events) == events[-1:]


def test_logins_in_logs_are_known_however_servers_write_them(home: Settings) -> None:
    known = Identifiers(logins=frozenset({"jörg", "bo li", "bob"}), emails=frozenset({"o'neil@mail.example"}))
    SuppressionList.of(home).add(known, FORGOTTEN)

    def asked(login: str, path: str = "/") -> bytes:
        return f'1.1.1.1 - {login} [01/Apr/2026:10:00:00 +0000] "GET {path} HTTP/1.1" 200 1 "-"'.encode()

    his = [asked(login) for login in ("jörg", r"j\xC3\xB6rg", r"j\xc3\xb6rg", "bo li", '"bo li"')]
    his += [asked("-", "/?m=o%27neil@mail.example"), b'{"user_id":"bob","request":{}}', b'{"ClientUsername":"bob"}']
    his += [b'{"remote_user":"bob","reque']
    others = [asked(login) for login in ("j", "li", r"j\xc3\xb6", "bo li x", '"bo"')]
    others += [b'{"user_id":"bobby","request":{}}', b'{"remote_user":"bob']
    assert left_of(home, VISITS.replace(".json", ".log"), [*his, *others]) == others


def test_a_number_is_an_id_in_a_line_that_was_cut_off_behind_it(home: Settings) -> None:
    SuppressionList.of(home).add(Identifiers(user_ids=frozenset({"124"})), FORGOTTEN)
    lines = [b'{"id": 124, "login": "l', b'{"id": 124', b'{"id": 1245, "login": "l']
    assert left_of(home, USERS, lines) == lines[1:]


def test_who_registers_again_comes_back_from_then_on(home: Settings) -> None:
    again = user(id="user-new", login="bob", registered_datetime="2026-06-01T00:00:00Z")
    before, after = (
        event(user_id="user-new", context={"user": {"login": "bob"}}, event_time=f"2026-0{month}-02T00:00:00Z")
        for month in (5, 6)
    )
    assert left_of(home, VISITS, [before, after]) == []
    assert left_of(home, USERS, [user(id="user-bob-1"), again]) == [again]
    assert left_of(home, VISITS, [before, after]) == [after]
    assert left_of(home, USERS, [user(login="bob"), again]) == [again]
    SuppressionList.of(home).add(BOB, datetime(2026, 7, 1, tzinfo=timezone.utc).timestamp())
    assert left_of(home, USERS, [again]) == []


def test_a_registration_in_the_future_is_no_new_one(home: Settings) -> None:
    of_2099, of_2100 = (user(login="bob", registered_datetime=f"{year}-01-01T00:00:00Z") for year in (2099, 2100))
    assert left_of(home, USERS, [of_2099]) == [of_2099]
    SuppressionList.of(home).add(BOB, FORGOTTEN, datetime(2099, 1, 1, tzinfo=timezone.utc).timestamp())
    stranger = event(event_time="2026-05-02T00:00:00Z", context={"user": {"ip": "9.9.9.9"}})
    assert left_of(home, VISITS, [stranger]) == [stranger]
    assert left_of(home, USERS, [of_2099, of_2100]) == [of_2100]


def test_an_address_is_that_of_strangers_later_on(home: Settings) -> None:
    def seen(at: str) -> bytes:
        return event(event_time=at, context={"user": {"ip": "9.9.9.9"}})

    assert left_of(home, VISITS, [seen("2026-04-30T23:59:59Z"), seen("x"), later := seen("2026-05-01T00:00:01Z")]) == [
        later
    ]
    before, after = (
        [
            f'9.9.9.9 - - [{time}/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-"'.encode(),
            # Neither a login nor a path says when it was.
            f'9.9.9.9 - 2031-01-01 [{time}/2026:10:00:00 +0000] "GET /2019-01-01T00:00:00Z HTTP/1.1" 200 1'.encode(),
            f'"GET /2031-01-01/plan HTTP/1.1" 9.9.9.9 - - [{time}/2026:10:00:00 +0000] 200 1'.encode(),
            f'9.9.9.9 - - [{day}T10:00:00+00:00] "GET / HTTP/1.1" 200 1'.encode(),
            f'{{"remote_addr": "9.9.9.9", "time": "{day}T10:00:00Z"}}'.encode(),
            f'{{"remote_addr": "9.9.9.9", "time_local": "{time}/2026:10:00:00 +0000"}}'.encode(),
        ]
        for time, day in (("30/Apr", "2026-04-30"), ("02/May", "2026-05-02"))
    )
    assert left_of(home, VISITS.replace(".json", ".log"), [*before, *after]) == after


def test_a_line_in_parts_goes_whole(home: Settings) -> None:
    asked = '[01/Apr/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200'
    texts = (f"P {asked}", 'F "9.9.9.9"', f"P 8.8.8.8 - - {asked[:40]}", f'F 9.9.9.9 - - {asked} 1 "-" "x"')
    lines = [f"2026-04-01T10:00:00Z stdout {text}".encode() for text in texts]
    declared = LogSettings(formats=('[$time_local] "$request" $status"$remote_addr"',))
    assert left_of(replace(home, logs=declared), VISITS.replace(".json", ".log"), lines) == [lines[2]]


def test_a_number_in_a_request_is_no_id(home: Settings) -> None:
    SuppressionList.of(home).add(Identifiers(user_ids=frozenset({"20260401"})), 0.0)
    day = b'1.2.3.4 - - [02/May/2026:10:00:00 +0000] "GET /archive/20260401 HTTP/1.1" 200 1 "-" "x"'
    assert left_of(home, VISITS.replace(".json", ".log"), [day]) == [day]


def test_the_list_has_no_value_and_needs_its_key(home: Settings) -> None:
    known = SuppressionList.of(home)
    assert not any(value.encode() in known.path.read_bytes() for value in BOB.values())
    secret = home.home / "secrets" / "suppression"
    kept = secret.read_text()
    secret.write_text("0" * 64)
    with pytest.raises(ListUnusable):
        known.suppressed()
    secret.unlink()
    with pytest.raises(ListUnusable):
        known.suppressed()
    secret.write_text(kept)
    secret.chmod(0o600)
    assert known.suppressed()
    # Whether the file is gone, or empty after a disk was full: nobody comes back without a word.
    for lose in (known.path.unlink, known.path.touch):
        lose()
        with pytest.raises(ListUnusable, match="is gone"):
            known.suppressed()


def test_without_a_forgotten_person_no_file_is_read(tmp_path: Path) -> None:
    home = config.load(overrides={"BLOGDATA_HOME": str(tmp_path)})
    assert suppression_list.erase_known(home, tmp_path, [tmp_path / "not there"]) == {}
    assert list(tmp_path.iterdir()) == []


LINES = [line(0), line(1), line(2).replace(b" - - ", b" - bob "), line(3), line(3602)]
LOG = "access_logs/a.log"


def split(home: Settings) -> int:
    return split_by_hour(home.landing / LOG, home.landing, formats(), now=NOW).lines


def parts(home: Settings) -> list[Path]:
    return sorted(home.landing.glob("visits/*/*/*.log"))


def land_log(home: Settings, lines: list[bytes]) -> Path:
    return land(home, LOG, [line.removesuffix(b"\n") for line in lines])


def test_a_split_log_and_its_hours_stay_one(home: Settings) -> None:
    log = land_log(home, LINES)
    split(home)
    assert sorted(suppression_list.erase_known(home, home.landing, [log, *parts(home)]).values()) == [1, 1]
    assert b"".join(part.read_bytes() for part in parts(home)) == log.read_bytes()
    assert unsplit_logs(home.landing) == []
    with log.open("ab") as more:
        more.write(line(3700))
    assert split(home) == 1
    # The log that was taken from is known again, whole and as its producer has it.
    (log.parent / "a.log.1").write_bytes(b"".join([*LINES, line(3700)]))
    suppression_list.erase_known(home, home.landing, [log.parent / "a.log.1"])
    with pytest.raises(PlatformError, match="begins with what was taken"):
        split_by_hour(log.parent / "a.log.1", home.landing, formats(), now=NOW)


def test_a_log_that_has_grown_at_its_producer_is_known_again(home: Settings, tmp_path: Path) -> None:
    log = land_log(home, LINES)
    split(home)
    suppression_list.erase_known(home, home.landing, [log, *parts(home)])
    (tmp_path / "a.log").write_bytes(b"".join([*LINES, line(3700)]))

    def known(copy: Path) -> None:
        suppression_list.erase_known(home, home.landing, [copy])

    assert replicate(tmp_path / "a.log", log.parent, prepare=known).outcome == "grown"
    assert split(home) == 1
    assert b"".join(part.read_bytes() for part in parts(home)) == log.read_bytes()
    assert replicate(tmp_path / "a.log", log.parent, prepare=known).outcome == "same"
    assert [path.name for path in log.parent.iterdir() if path.name[0] != "."] == ["a.log"]


@pytest.mark.parametrize("moment", ["before the rename", "after it"])
def test_a_log_is_split_on_after_a_kill(home: Settings, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = land_log(home, LINES)
    split(home)
    before = parts(home)[1].read_bytes()

    with monkeypatch.context() as patch:
        write = log_splitter.write_progress

        def noting(log: Path, taken: log_splitter.Taken) -> None:
            if moment == "after it" and taken.erased_sha256 is None:
                raise Killed
            write(log, taken)
            if moment == "before the rename":
                raise Killed

        patch.setattr(log_splitter, "write_progress", noting)
        with pytest.raises(Killed):
            suppression_list.erase_known(home, home.landing, [log])
    with log.open("ab") as more:
        more.write(line(3700))
    assert split(home) == 1
    assert parts(home)[1].read_bytes() == before
    suppression_list.erase_known(home, home.landing, [log, *parts(home)])
    assert b"".join(part.read_bytes() for part in parts(home)) == log.read_bytes()
    assert unsplit_logs(home.landing) == []
    assert split(home) == 0


def test_a_log_is_not_overwritten_while_it_is_split(home: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The splitter would note the digest of lines that are not there any more, and refuse the log for ever."""
    log = land_log(home, LINES)
    erasing = Thread(target=suppression_list.erase_known, args=(home, home.landing, [log]))

    class Slow(LogReader):
        def hour_of(self, line: bytes) -> str | None:
            if erasing.ident is None:
                erasing.start()
                erasing.join(0.3)
                assert erasing.is_alive()
            return super().hour_of(line)

    monkeypatch.setattr(log_formats, "LogReader", Slow)
    with suppression_list.splitting(home):
        split_by_hour(log, home.landing, formats(), now=NOW)
    erasing.join()
    assert b"bob" not in log.read_bytes()
    with log.open("ab") as more:
        more.write(line(3700))
    assert split(home) == 1


def test_a_link_to_a_log_keeps_the_log_known(home: Settings) -> None:
    log = land_log(home, LINES)
    split(home)
    link = log.parent / "0-current.log"
    link.symlink_to(log.name)
    assert suppression_list.erase_known(home, home.landing, [link, log]) == {link: 1}
    with log.open("ab") as more:
        more.write(line(3700))
    assert split(home) == 1
