"""What a container's runtime writes around a line, and in how many parts, changes nothing of its row."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.bronze.request_lines import LogLines
from blogdata.landing.landed_persons import Identifiers, Reader
from blogdata.landing.log_formats import formats
from blogdata.landing.suppression_list import Suppressed
from blogdata.operate.config import LogSettings
from datasets.log_rows import FIREFOX, line
from unit.test_log_formats import SAMPLES
from unit.test_log_headers import SYSLOG
from unit.test_request_lines import NAMES, WITHOUT_AGENT, rows_of

AT = "2015-05-17T10:05:03.123456789Z"
LINE, OF_SAMPLES = line(), "2022-10-03T19"
JSON = json.dumps(
    {"msec": "1431857103", "ip": "10.0.0.1", "request": "GET /blog/a HTTP/1.1", "status": 200, "agent": FIREFOX}
)


def docker(text: str, end: str = "\n", **more: object) -> str:
    return json.dumps({"log": text + end, "stream": "stdout", **more, "time": AT})


def cri(tag: str, text: str, stream: str = "stdout") -> str:
    return f"{AT} {stream} {tag} {text}"


def in_parts(text: str, end: str = "\n", **more: object) -> list[str]:
    """Return what Docker writes of a line."""
    parts = [text[at : at + 16_384] for at in range(0, len(text), 16_384)]
    return [docker(one, end if one is parts[-1] else "", **more) for one in parts]


def seen(lines: list[Any]) -> list[tuple[str | None, str | None]]:
    """Return of each line the page, or why there is none, and the client."""
    return [((row["reasons"] or [row["filtered_by"] or row["page"]])[0], row["client"]) for row in rows_of(lines)]


PAGE, PART, PROSE = ("/blog/a", "10.0.0.1"), ("continued", None), ("not_combined_log:time", None)
OBJECT = ("not_traefik_json_log:address", None)
LONG = json.dumps({**json.loads(JSON), "referer": "x" * 40_000})


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([docker(LINE, attrs={"tag": "web"}), docker(JSON)], [PAGE, PAGE]),
        ([docker("#Version: 1.0"), docker(f"<13>nginx: {LINE}\r")], [("comment", None), PAGE]),
        (in_parts(LONG), [PART, PART, PAGE]),
        # As shippers pass them on, without line feeds.
        (in_parts(LONG, ""), [PART, PART, PAGE]),
        ([docker(one, "") for one in (LINE, "not a line", WITHOUT_AGENT, LINE)], [PAGE, PROSE, PAGE, PAGE]),
        ([*in_parts("x" * 2_000_000)[:64], docker(LINE)], [PART] * 64 + [PAGE]),
        ([docker(LINE[:50], "", logtag="P"), docker(LINE[50:], "", logtag="F")], [PART, PAGE]),
        ([docker(LINE, x=1)], [OBJECT]),
        ([cri("F", LINE), cri("F:x", JSON)], [PAGE, PAGE]),
        ([cri("P", JSON[:20]), cri("P:x", JSON[20:]), cri("F", "")], [PART, PART, PAGE]),
        ([cri("P", LINE[:50]), cri("F", LINE, "stderr"), cri("F", LINE[50:])], [PART, PAGE, PAGE]),
        # The first line never ended; the beginning of the second one is not there.
        ([cri("P", LINE[:50]), cri("F", LINE)], [PART, PAGE]),
        ([cri("F", LINE[50:]), cri("F", LINE)], [PROSE, PAGE]),
        ([cri("F", cri("F", "") * 20_000), docker(docker(LINE))], [PROSE, OBJECT]),
        ([cri(one, "").encode() + b"\xc3" for one in "PF"], [PART, ("not_combined_log:encoding", None)]),
    ],
)
def test_a_line_is_read_without_what_a_runtime_writes(
    written: list[Any], expected: list[tuple[str | None, str | None]]
) -> None:
    assert seen(written) == expected


def test_a_line_may_be_cut_anywhere() -> None:
    text = line("GET /caf\u00e9?a HTTP/1.1", agent=FIREFOX + " \u20ac").encode()
    whole = rows_of([text])[0]
    for at in range(1, len(text)):
        parts = [cri("P", "").encode() + text[:at], cri("F", "").encode() + text[at:]]
        first, last = rows_of(parts)
        assert (first["filtered_by"], last) == ("continued", whole), at


def test_the_parts_of_a_line_are_in_one_hour_whatever_stands_in_them() -> None:
    text = line(referrer="x 10.0.0.9 - - [01/Jan/2020:00:00:00 +0000] ")
    at = text.index("10.0.0.9")
    written = [cri("P", text[:at]), cri("F", text[at:]), cri("F", LINE[:-5]), docker(JSON[:9], "")]
    log = formats().of_log()
    assert [log.hour_of(one.encode() + b"\n") for one in written] == ["2015-05-17T10"] * 4
    assert formats().hour_of(docker(JSON).encode()) == "2015-05-17T10"


HEADERS, WAYS = ("", "\ufeff", "\0\0", *SYSLOG), ("bare", "docker", "shipped", "cri")
DRAWN = st.tuples(*map(st.sampled_from, ([*SAMPLES], HEADERS, WAYS, range(1, 100), (False, True))))


@settings(max_examples=25, deadline=None)
@given(st.lists(DRAWN, max_size=4), st.randoms(use_true_random=False))
def test_the_lines_of_a_person_are_those_of_his_rows(drawn: list[Any], random: Random) -> None:
    """In whatever format, envelope and parts, also before a line that never ended."""
    queues, persons = {"stdout": list[tuple[str, str]](), "stderr": list[tuple[str, str]]()}, {"10.0.2.1": ""}
    for number, (name, header, way, at, never_ends) in enumerate(drawn):
        stream, login = random.choice([*queues]), f"login-{number}"
        address = random.choice((f"10.0.1.{number}", f"2001:db8::{number + 1}"))
        text = SAMPLES[name].replace("203.0.113.9", address).replace("/a/", f"/{'b' * 300 * at}")
        text = text.replace(" - - [", f" - {login} [").replace('{"', f'{{"remote_user": "{login}", "', 1)
        persons[address] = login if login in text else ""
        text = header * (rows_of([header + text], hour=OF_SAMPLES)[0]["client"] == address) + text
        parts = [text] if way == "bare" else in_parts(text, "\n" if way == "docker" else "", stream=stream)
        parts = [cri("P", text[:-at], stream), cri("F", text[-at:], stream)] if way == "cri" else parts
        # Of what has begun only, what names the person.
        parts = [part for part in parts[:-1] if address in part] if never_ends else parts
        queues[stream] += [(address, part) for part in parts]
        queues[stream] += [("10.0.2.1", docker(line(address="10.0.2.1"), stream=stream))] * never_ends
    order = [stream for stream, queue in queues.items() for _ in queue]
    random.shuffle(order)
    whose, lines = zip(*(queues[stream].pop(0) for stream in order), strict=True) if order else ((), ())
    rows = zip(rows_of(lines, hour=OF_SAMPLES), whose, strict=True)
    assert all(row["client"] in (address, None) and not row["reasons"] for row, address in rows)
    for address, login in persons.items():
        for known in (Identifiers(addresses=frozenset({address})), Identifiers(logins=frozenset({login} - {""}))):
            reader = Reader(Path("/landing/access_logs/a.log"), Path("/landing"), LogSettings())
            gone = Suppressed.of(known, b"key").gone(reader, enumerate(map(str.encode, lines)))
            assert gone == {at for at, one in enumerate(whose) if one == address} or not known.values()


HTTPLOG = '10.0.0.9:1 [{time}] in~ a/web1 0/0/1/24/25 {status} {bytes} - - ---- 1/1/0/0/0 0/0 {captured}"{request}"'


@pytest.mark.parametrize(
    ("zone", "time", "hour"),
    [
        ("UTC", "03/Oct/2015:19:59:42.123", "2015-10-03T19:59:42.123000+00:00"),
        ("Europe/Berlin", "03/Oct/2015:19:59:42.123", "2015-10-03T17:59:42.123000+00:00"),
        ("Europe/Berlin", "03/Jan/2015:19:59:42", "2015-01-03T18:59:42+00:00"),
        ("Europe/Berlin", "25/Oct/2015:02:30:00.000", "2015-10-25T00:30:00+00:00"),
        ("Asia/Kathmandu", "01/Jan/2016:00:00:00.000", "2015-12-31T18:15:00+00:00"),
    ],
)
@pytest.mark.parametrize("before", ["", "Feb  6 12:14:14 lb1 haproxy[14389]: ", f"{AT} stdout F ", "lb-1  | "])
def test_a_time_without_an_offset_is_in_the_zone_of_the_settings(zone: str, time: str, hour: str, before: str) -> None:
    filled = {"time": time, "status": 200, "bytes": "+134", "captured": "{a|b c} {} ", "request": "GET /a HTTP/1.1"}
    request = before + HTTPLOG.format(**filled)
    reader = LogLines(LogSettings(zone=zone)).of_file("a.log", "2030-01-01T00")
    row: dict[str, Any] = dict(zip(NAMES, reader(0, request.encode()), strict=True))
    assert (row["format"], row["page"], row["client"], row["bytes"]) == ("haproxy", "/a", "10.0.0.9", 134)
    assert row["event_time"].isoformat() == hour
    assert formats((), zone).hour_of(request.encode()) == hour[:13]


def test_what_haproxy_writes_is_read() -> None:
    behind = 'GET /a HTTP/1.1" 0/0/0/0/0 blog.example.org/TLSv1.3/TLS_AES_128_GCM_SHA256'
    for status, request, expected in (
        ("-1", "<BADREQ>", "method"),
        ("-1", "GET /a HTTP/1.1", "status"),
        ("200", "GET https://blog.example.org/a HTTP/2.0", "/a"),
        ("200", behind, "/a"),
    ):
        text = HTTPLOG.format(time="17/May/2015:10:05:03.1", status=status, bytes=0, captured="", request=request)
        assert seen([text.removesuffix('"') if request == behind else text]) == [(expected, "10.0.0.9")]


@pytest.mark.parametrize(
    "prose", ["# a comment", "#a", "# a: b", "##", "#", "#!/bin/sh", f"# {LINE}", f"#{LINE}", "#Fields:"]
)
def test_prose_behind_a_hash_is_a_comment(prose: str) -> None:
    assert seen([prose, LINE, docker(prose)]) == [("comment", None), PAGE, ("comment", None)]
    declared = LogSettings(formats=('#$connection $remote_addr [$time_local] "$request" $status',))
    (row,) = rows_of(['#17 10.0.0.1 [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200'], declared)
    assert (row["format"], row["page"]) == ("declared", "/a")


AZURE = '{{"time": "2015-05-17T10:05:03.1234567Z", "properties": {{"clientIp": "10.0.0.1", "httpMethod": "GET", {}}}}}'
GOOGLE = '{{"timestamp": "2015-05-17T10:05Z", "httpRequest": {{"remoteIp": "10.0.0.1", "requestMethod": "GET", {}}}}}'
CADDY = '{{"ts": 1431857103.5, "status": 200, "request": {{"method": "GET", "uri": "/a", "host": "b.example", {}}}}}'
NGINX = '{{"msec": 1431857103, "status": 200, "request_method": "GET", {}}}'
ALB = 'https 2015-05-17T10:05:03.1Z app/b/5 10.0.0.1:2 10.0.0.7:80 0 0 0 200 200 34 134 "GET {} HTTP/1.1" "Firefox" -'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (ALB.format("https://b.example:443/a"), "alb"),
        (ALB.format("HTTP://B.example/a?c"), "alb"),
        (AZURE.format('"requestUri": "https://b.example:443/a", "httpStatusCode": "200"'), "azure"),
        (AZURE.format('"requestUri": "/a", "httpStatus": 200, "host": "x", "originalHost": "b.example"'), "azure"),
        (AZURE.format('"requestUri": "http://x/a", "hostName": "b.example", "httpStatusCode": "200"'), "azure"),
        (GOOGLE.format('"requestUrl": "https://b.example/a", "status": 200'), "google"),
        (GOOGLE.format('"requestUrl": "https://ann:pw@b.example:8443/a?c", "status": 200'), "google"),
        (line("GET http://b.example/a HTTP/1.1"), "combined"),
        ("- " + line("GET http://b.example/a HTTP/1.1"), "host_combined"),
        (CADDY.format('"client_ip": "", "remote_ip": "10.0.0.1"'), "caddy"),
        (CADDY.format('"client_ip": "-", "remote_ip": "10.0.0.1:80"'), "caddy"),
        (CADDY.format('"client_ip": null, "remote_ip": "", "remote_addr": "10.0.0.1"'), "caddy"),
        (NGINX.format('"remote_addr": "-", "client_ip": "10.0.0.1", "url": "https://b.example/a"'), "nginx_json"),
        (NGINX.format('"ip": "10.0.0.1", "host": "", "vhost": "b.example", "path": "", "url": "/a"'), "nginx_json"),
        (NGINX.format('"ip": "10.0.0.1", "host": "b.example", "url": "https://x.example/a"'), "nginx_json"),
    ],
)
def test_a_place_without_a_value_is_none_and_the_host_of_a_url_is_one(text: str, name: str) -> None:
    (row,) = rows_of([text])
    assert (row["format"], row["client"], row["page"], row["host"]) == (name, "10.0.0.1", "/a", "b.example")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NGINX.replace("GET", "").format('"ip": "10.0.0.1", "request_uri": ""'), "method"),
        (JSON.replace("GET /blog/a HTTP/1.1", ""), "method"),
        (JSON.replace("200", "29999"), "status"),
        (JSON.replace("200", '"2xx"'), "status"),
        (JSON.replace("200", "0"), "status"),
        *((JSON.replace("1431857103", f"1431857103{more}"), "/blog/a") for more in (".5", "123", "123.4", "123456")),
        (JSON.replace('"1431857103"', "1431857103123456789"), "/blog/a"),
        (JSON.replace('"1431857103"', "1.431857103123e12"), "/blog/a"),
        (JSON.replace("1431857103", "143185710"), "impossible_time"),
        (JSON.replace("1431857103", "14318571"), "not_nginx_json_log:time"),
        (AZURE.replace('"time"', '"timestamp"').format('"requestUri": "/blog/a", "httpStatus": 200'), "/blog/a"),
    ],
)
def test_what_was_no_request_is_filtered_and_digits_tell_the_unit_of_a_time(text: str, expected: str) -> None:
    (row,) = rows_of([text])
    assert (row["reasons"] or [row["filtered_by"] or row["page"]]) == [expected]
    assert row["reasons"] or f"{row['event_time']:%FT%H:%M:%S}" == "2015-05-17T10:05:03"


QUOTED = '"$remote_addr" - "$remote_user" "[$time_local]" "$request" $status'
IIS = "#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query cs-username sc-status"
OWN_KEY = '{"u": "$remote_user", "a": "$remote_addr", "at": $msec, "r": "$request", "s": $status}'
AT_END = '$remote_addr [$time_local] "$request" $status user=$remote_user;'


@pytest.mark.parametrize(
    ("declared", "text", "login"),
    [
        (QUOTED, '"10.0.0.1" - "frank" "[17/May/2015:10:05:03 +0000]" "GET /a HTTP/1.1" 200', "frank"),
        (QUOTED, '"10.0.0.1" - "bo peep" "[17/May/2015:10:05:03 +0000]" "GET /a', "bo peep"),
        (QUOTED, cri("F", '"10.0.0.1" - "frank" "[17/May/2015:10:05:03 +0000]" "-" 400'), "frank"),
        (AT_END, '10.0.0.1 [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 user=frank;', "frank"),
        (OWN_KEY, '{"u": "bo"}', "bo"),
        (OWN_KEY, '{"U": "bo", ', "bo"),
        ("", f"{IIS}\n2015-05-17 10:05:03 10.0.0.1 GET /a q[]=1 MAIL\\frank 200", "MAIL\\frank"),
        ("", f"<13>nginx: {LINE.replace('- - [', '- frank [')}", "frank"),
    ],
)
def test_a_login_is_found_where_its_format_has_it(declared: str, text: str, login: str) -> None:
    logs = LogSettings(formats=(declared,) if declared else ())
    of_another = f"Oct  3 21:59:42 {login.replace(' ', '-')} nginx[9]: {LINE}"
    lines = [*enumerate(map(str.encode, (*text.split("\n"), of_another)))]

    def gone(login: str) -> set[int]:
        reader = Reader(Path("/landing/access_logs/a.log"), Path("/landing"), logs)
        return Suppressed.of(Identifiers(logins=frozenset({login})), b"key").gone(reader, lines)

    # The host of another's line is no login.
    assert gone(login) == {text.count("\n")}
    assert gone("Oct") == gone("nginx") == gone("web1") == set()
