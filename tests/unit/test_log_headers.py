"""Lines below a `#Fields` line have its columns; columns, syslog headers, declarations are read as they are written."""

from __future__ import annotations

import json

import pytest

from blogdata.landing.log_formats import LogReader, Misfit, formats

DEFAULT = (
    "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer)"
    " sc-status sc-substatus sc-win32-status time-taken"
)
OWN = DEFAULT.replace("cs(Referer)", "cs(Cookie)")
CLOUDFRONT = (
    "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer)"
    " cs(User-Agent) cs-uri-query cs(Cookie) x-host-header x-forwarded-for"
)
REST = '[05/Jan/2026:10:00:01 +0000] "GET /a HTTP/1.1" 200 134 "-" "Firefox/120.0"'
LINE = f"192.0.2.1 - - {REST}"


def iis(value: str, address: str = "192.0.2.7") -> str:
    return f"2026-01-05 10:05:01 10.0.0.7 GET /b - 443 - {address} Firefox+120 {value} 200 0 0 25"


def read(log: LogReader, line: str) -> dict[str, str]:
    found = log.read(line)
    assert isinstance(found, tuple), (line, found)
    return {"format": found[0], **found[1]}


@pytest.mark.parametrize("declared", [(), (OWN,)])
def test_a_line_has_the_columns_of_the_header_above_it(declared: tuple[str, ...]) -> None:
    log, of_own = formats(declared).of_log(), "declared" if declared else "iis"
    found = []
    for _ in range(2):
        for header in (DEFAULT, OWN, DEFAULT.replace("cs(Referer)", "cs-host")):
            assert read(log, f"{header}\r")["format"] == "comment"
            found.append(read(log, iis("blog.example.com")))
    own, default, host = (
        {"format": of_own},
        {"format": "iis", "referrer": "blog.example.com"},
        {"format": "iis", "host": "blog.example.com"},
    )
    kept = [{name: row[name] for name in ("format", "referrer", "host") if name in row} for row in found]
    assert kept == [default, own, host] * 2
    assert {(row["address"], row["agent"], row["request"]) for row in found} == {
        ("192.0.2.7", "Firefox 120", "GET /b HTTP/1.1")
    }


def test_a_header_without_an_address_leaves_its_lines_unread() -> None:
    log = formats().of_log()
    read(log, DEFAULT.replace("c-ip", "X-Real-IP"))
    assert log.read(iis("-")) == Misfit(format="iis", field="address")
    assert read(log, LINE)["format"] == "combined", "of another log in the same file"
    read(log, DEFAULT)
    assert read(log, iis("-"))["address"] == "192.0.2.7"


def test_a_header_that_lacks_a_field_leaves_the_columns_that_are_declared_for_it() -> None:
    lacking, log = DEFAULT.replace("c-ip", "X-Real-IP"), formats((DEFAULT,)).of_log()
    read(log, lacking)
    row = read(log, iis("-"))
    assert (row["format"], row["address"]) == ("declared", "192.0.2.7")
    read(log, f"{lacking} cs-host")
    assert isinstance(log.read(iis("-")), Misfit), "of other columns"
    read(log, OWN)
    assert "referrer" not in read(log, iis("blog.example.com"))


def test_a_header_tells_the_order_of_date_and_time() -> None:
    log = formats().of_log()
    assert log.hour_of(b"10:05:03 2015-05-17 GET /a 10.0.0.1 200") is None
    assert log.hour_of(b"#Fields: time date cs-method cs-uri c-ip sc-status\n") is None
    assert log.hour_of(b"10:05:03 2015-05-17 GET /a 10.0.0.1 200\n") == "2015-05-17T10"


def test_only_tabulators_separate_the_columns_of_a_line_that_has_them() -> None:
    log = formats().of_log()
    read(log, CLOUDFRONT)
    values = ["2026-01-05", "10:00:04", "FRA2", "392", "192.0.2.7", "GET", "d.cloudfront.net", "/caf%25C3%25A9", "200"]
    values += ["https://example.com/?q=a%2520b", "Mozilla/5.0%2520(X11)%20rv:%2520120", "utm_source=n%2526l", "-", "b"]
    for forwarded in ("198.51.100.9, 203.0.113.5", "198.51.100.9,%20203.0.113.5"):
        row = read(log, "\t".join((*values, forwarded)))
        assert row["forwarded"] == "198.51.100.9, 203.0.113.5"
    assert row["request"] == "GET /caf%C3%A9?utm_source=n%26l HTTP/1.1"
    assert (row["referrer"], row["agent"]) == ("https://example.com/?q=a%20b", "Mozilla/5.0 (X11) rv: 120")
    assert isinstance(log.read("\t".join(values)), Misfit)


HOSTS = ('"$host"', "[$host]", "host=$host;", '"$server_name"', '"$http_host"')
HOST_FIRST = ("$host|", '"$host" ', "[$host] ", "$host;")
AGENT = '"$http_referer" "$http_user_agent"'


@pytest.mark.parametrize(
    "declaration",
    [
        *(f'$remote_addr - $remote_user [$time_local] "$request" $status $bytes_sent {AGENT} {host}' for host in HOSTS),
        *(
            f'{host}$remote_addr - $remote_user [$time_local] "$request" $status $bytes_sent {AGENT}'
            for host in HOST_FIRST
        ),
        '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" "%v"',
        '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" "%{Host}i"',
        f'[$time_local] "$remote_addr" "$request" $status $upstream_status; {AGENT} "$host" $upstream_addr;',
    ],
)
def test_a_value_ends_where_the_declaration_says(declaration: str) -> None:
    values = {"host": "blog.example.com", "server_name": "blog.example.com", "http_host": "blog.example.com"}
    values |= {"v": "blog.example.com", "{Host}i": "blog.example.com", "remote_addr": "192.0.2.1", "h": "192.0.2.1"}
    values |= {"remote_user": "-", "l": "-", "u": "-", "t": "[05/Jan/2026:10:00:01 +0000]", "status": "200"}
    values |= {"time_local": "05/Jan/2026:10:00:01 +0000", "request": "GET /a HTTP/1.1", "r": "GET /a HTTP/1.1"}
    values |= {"bytes_sent": "134", "b": "134", ">s": "200", "http_referer": "-", "{Referer}i": "-"}
    values |= {"http_user_agent": "Firefox/120.0", "{User-Agent}i": "Firefox/120.0", "upstream_status": "502, 200"}
    values |= {"upstream_addr": "10.0.0.7:80, 10.0.0.8:80"}
    line = declaration
    for name in sorted(values, key=len, reverse=True):
        line = line.replace(f"${name}", values[name]).replace(f"%{name}", values[name])
    row = read(formats((declaration,)).of_log(), line)
    assert (row["format"], row["host"], row["address"]) == ("declared", "blog.example.com", "192.0.2.1"), line


SYSLOG = (
    "Oct  3 21:59:42 web1 nginx: ",
    "Oct  3 21:59:42 web1 nginx ",
    "Oct  3 21:59:42 web1 ",
    "<190>Oct  3 21:59:42 web1 nginx[9]: ",
    "2022-10-03T21:59:42.1+02:00 web1 nginx: ",
    "<190>2022-10-03T21:59:42Z web1 nginx: ",
    "<190>1 2026-01-06T10:00:01.003+00:00 web1 nginx 1234 ACCESS - ",
    '<190>1 - - - - - [a@1 b="c\\]"][d@1] \ufeff',
    "1 2026-01-06T10:00:01.003+00:00 web1 nginx 9 - - ",
    "<13>",
    "<13>nginx: ",
    "<13>nginx ",
    "2026-01-06T10:00:01+00:00 web1 nginx ",
    "2026-01-06T10:00:01+0000 10.0.0.5 nginx ",
    "2026-01-06T10:00:01+0000 web1 nginx[9]: ",
    "Oct 03 21:59:42.123456 web1 nginx[9]: ",
    "Oct 3 21:59:42 10.0.0.5 ",
    "Oct  3 2022 21:59:42 web1 nginx: ",
    "<190>2022-10-03T21:59:42Z web1 ",
    "Mon 2022-10-03 19:59:42 UTC web1 nginx[9]: ",
    "1664827182.123456 web1 nginx[9]: ",
    "web-1  | ",
    "[pod/a-1/web] ",
)


@pytest.mark.parametrize("header", SYSLOG)
@pytest.mark.parametrize("line", [LINE, f"blog.example.org:443 {LINE}", '{"msec": "1767607201", "ip": "192.0.2.1"'])
def test_what_syslog_writes_before_a_line_is_no_part_of_it(header: str, line: str) -> None:
    is_object = line.startswith("{")
    line += ', "request": "GET / HTTP/1.1", "status": 200}' if is_object else ""
    row = read(formats().of_log(), header + line)
    assert row["format"] == ("nginx_json" if is_object else "vhost_combined" if "443" in line else "combined")
    assert row["address"] == "192.0.2.1"
    assert formats().hour_of((header + line).encode()) == "2026-01-05T10"


@pytest.mark.parametrize("status", ["0", "-"])
def test_traefik_writes_no_status_of_a_client_that_was_gone(status: str) -> None:
    line = f'192.0.2.7 - - {REST.replace(" 200 134", f" {status} 0")} 2 "blog@docker" "http://10.0.0.7:80" 2676ms'
    row = read(formats().of_log(), line)
    assert (row["format"], row["status"]) == ("traefik", status)


def test_the_last_of_equal_keys_counts_and_numbers_may_have_an_exponent() -> None:
    asked = {"remote_addr": "192.0.2.1", "request": "GET /a HTTP/1.1", "status": 200}
    twice = f'{{"time": "2026-01-07T10:00:01+00:00", "time": "2026-01-07T11:00:01.123Z", {json.dumps(asked)[1:]}'
    exponent = f'{{"msec": 1.767607204e9, {json.dumps(asked)[1:]}'
    long = f'{{"msec": 1767607204.5, "x": 1.5e400, "y": {"9" * 10_000}, {json.dumps(asked)[1:]}'
    half = f'{{"msec": 1767607204, "user_agent": "a\\ud800b\\ud83d\\ude00", {json.dumps(asked)[1:]}'
    rows = [read(formats().of_log(), line) for line in (twice, exponent, long, half)]
    assert [row["time"] for row in rows] == ["2026-01-07T11:00:01.123Z", "1767607204", "1767607204.5", "1767607204"]
    assert rows[3]["agent"] == "a?b😀"
    hours = [formats().hour_of(line.encode()) for line in (twice, exponent, long)]
    assert hours == ["2026-01-07T11", "2026-01-05T10", "2026-01-05T10"]
    for status in ("200.0", "2e2"):
        assert read(formats().of_log(), exponent.replace("200", status))["status"] == "200"
    for constant in ("NaN", "Infinity"):
        assert formats().of_log().read(f'{{"x": {constant}, {json.dumps(asked)[1:]}') == Misfit(
            format="nginx_json", field="object"
        )
