"""Log format declarations are compiled; each line is parsed by one of them, or rejected with its first wrong field."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from assets.bronze.request_targets import target_of
from blogdata.landing import log_formats
from blogdata.landing.log_declarations import LogFormatUnusable, compile_text
from blogdata.landing.log_formats import LogFormats, Misfit, formats
from blogdata.landing.log_layouts import TextFormat

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "your-own-log.md"
SAMPLES = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| `([^|]*)` \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
STAMP, ASKED = "[03/Oct/2022:21:59:42 +0200]", '"GET / HTTP/1.1"'
TAKEN = "2022-10-03T19:59:42.123456789Z"
REST = '[03/Oct/2022:21:59:42 +0200] "GET /a HTTP/1.1" 200 5 "-" "Mozilla/5.0"'
JSON = '"at": 1664827182.5, "ip": "203.0.113.9", "r": "GET / HTTP/1.1", "s": 200'


def fields(line: str, known: LogFormats | None = None) -> dict[str, str]:
    found = (known or formats()).of_log().read(line)
    assert isinstance(found, tuple), (line, found)
    return found[1]


def format_of(line: str, known: LogFormats | None = None) -> str | None:
    found = (known or formats()).of_log().read(line)
    return found[0] if isinstance(found, tuple) else None


def misfit_of(line: str) -> Misfit:
    found = formats().of_log().read(line)
    assert isinstance(found, Misfit)
    return found


def test_the_docs_have_a_sample_of_each_format() -> None:
    assert list(SAMPLES) == list(log_formats.NAMES)


@pytest.mark.parametrize("name", log_formats.NAMES)
def test_the_sample_of_a_format_is_read_by_it(name: str) -> None:
    line = SAMPLES[name]
    assert format_of(line) == name
    read = fields(line)
    assert (read["address"].removesuffix(":33317"), read["status"]) == ("203.0.113.9", "200")
    asked = target_of(read["request"])
    assert asked[:3] == ("GET", "/a/", "")
    assert asked.host.removesuffix(":443") == ("blog.example.org" if name in ("alb", "azure", "google") else "")
    with_host = {"vhost_combined", "host_combined", "cloudfront", "caddy", "traefik_json", "nginx_json", "azure"}
    assert read.get("host") == ("blog.example.org" if name in with_host else None)
    assert read.get("forwarded") == ("-" if "main" in name or name == "cloudfront" else None)
    assert read.get("bytes") == (None if name == "iis" else "134")
    assert name in ("common", "alb", "haproxy") or read["referrer"] == "https://example.com/"
    assert name in ("common", "haproxy") or read["agent"] == "Mozilla/5.0 (X11; Linux x86_64) Firefox/120.0"
    assert formats().hour_of(line.encode()) == "2022-10-03T19"


@pytest.mark.parametrize(
    ("line", "name", "address"),
    [
        pytest.param(f"blog.example.org:443 203.0.113.9 - - {REST}", "vhost_combined", "203.0.113.9", id="port"),
        pytest.param(f"blog.example.org:443 a.example.net - - {REST}", "vhost_combined", "a.example.net", id="names"),
        pytest.param(f"10.0.0.1:443 203.0.113.9 - - {REST}", "vhost_combined", "203.0.113.9", id="host by address"),
        pytest.param(f"[::1]:443 2001:db8::1 - frank {REST}", "vhost_combined", "2001:db8::1", id="IPv6"),
        pytest.param(f"[::1]:443 a.example.net - - {REST}", "vhost_combined", "a.example.net", id="IPv6, looked up"),
        pytest.param(f"[2001:db8::1]:443 - - {REST}", "combined", "[2001:db8::1]:443", id="port of IPv6"),
        pytest.param(f"203.0.113.9:443 - frank {REST}", "combined", "203.0.113.9:443", id="port of the client"),
        pytest.param(f"blog.example.org 203.0.113.9 - - {REST}", "host_combined", "203.0.113.9", id="no port"),
        pytest.param(f"blog.example.org a.example.net - - {REST}", "host_combined", "a.example.net", id="no address"),
        pytest.param(f"_ 2001:db8::1 - - {REST}", "host_combined", "2001:db8::1", id="unnamed host"),
        pytest.param(f"a.example.net - - {REST}", "combined", "a.example.net", id="looked up"),
        pytest.param(f"203.0.113.9 - - {REST}\r", "combined", "203.0.113.9", id="CRLF"),
        pytest.param(f"unix: - - {REST}", "combined", "unix:", id="socket"),
        pytest.param(f"a.example.net - frank {REST}", "combined", "a.example.net", id="looked up, user"),
        pytest.param(f"2001:db8::1 - john smith {REST}", "combined", "2001:db8::1", id="spaces in the user"),
        pytest.param(f'203.0.113.9 - "a [b" {REST}', "combined", "203.0.113.9", id="bracket in the user"),
        pytest.param(f"203.0.113.9 https://b.example - - {REST}", "combined", "203.0.113.9", id="host second"),
        pytest.param(f"10.0.0.2, 198.51.100.1 - - {REST}", "combined", "198.51.100.1", id="list"),
        pytest.param(f"unknown,2001:db8::1,198.51.100.1 - - {REST}", "combined", "198.51.100.1", id="list, no spaces"),
        pytest.param(f'10.0.0.2, 198.51.100.1 - - {REST} "10.0.0.2"', "main", "198.51.100.1", id="list, and header"),
        pytest.param(f"2001:db8::1, a.example.net - frank {REST}", "combined", "a.example.net", id="list, looked up"),
        pytest.param(f"b.example 10.0.0.2, 198.51.100.1 - - {REST}", "host_combined", "198.51.100.1", id="host, list"),
        pytest.param(f"fe80::1%eth0 - - {REST}", "combined", "fe80::1%eth0", id="zone"),
        pytest.param("\0" * 512 + f"203.0.113.9 - - {REST}", "combined", "203.0.113.9", id="NUL bytes"),
        pytest.param(f"\ufeff203.0.113.9 - - {REST}", "combined", "203.0.113.9", id="byte order mark"),
        pytest.param(f"\ufeffb.example:443 203.0.113.9 - - {REST}", "vhost_combined", "203.0.113.9", id="mark, host"),
        pytest.param(f"web | 203.0.113.9 - - {REST}", "combined", "203.0.113.9", id="docker compose"),
        pytest.param(f"web-1  | b.example:80 203.0.113.9 - - {REST}", "vhost_combined", "203.0.113.9", id="and host"),
        pytest.param(f"{TAKEN} a.example.net - - {REST}", "combined", "a.example.net", id="docker logs -t"),
        pytest.param(f"web-1  | {TAKEN} ::1 - - {REST}", "combined", "::1", id="docker compose logs -t"),
        pytest.param(f"[pod/a-1/web] 203.0.113.9 - - {REST}", "combined", "203.0.113.9", id="kubectl logs --prefix"),
        pytest.param(f"[pod/a-1/web] {TAKEN} 203.0.113.9 - - {REST}", "combined", "203.0.113.9", id="and its time"),
        pytest.param(f"203.0.113.9 | 10.0.0.7 - {REST}", "combined", "203.0.113.9", id="an address is no container"),
        pytest.param(f"a.example.net | frank {REST}", "combined", "a.example.net", id="no word for the ident"),
        # A dash as the visitor: such lines are dead letters until their format is declared.
        pytest.param(f"blog.example.org - 203.0.113.9 - - {REST}", "host_combined", "-", id="host, dash"),
    ],
)
def test_a_host_before_the_address_is_never_the_visitor(line: str, name: str, address: str) -> None:
    assert (format_of(line), fields(line)["address"]) == (name, address)
    assert formats().hour_of(line.encode()) == "2022-10-03T19"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not_combined_log:address"),
        (f"\ufeff\ufeff203.0.113.9 - - {REST}", "not_combined_log:address"),
        (f"17 203.0.113.9 - - {REST}", "not_combined_log:address"),
        (f"     17 203.0.113.9 - - {REST}", "not_combined_log:address"),
        (f"web-1  | 203.0.113.9 - - {REST[:-1]}", "not_combined_log:agent"),
        (f"{TAKEN} stdout F ", "not_combined_log:address"),
        # A pod, its container and the line; a name that is no visitor.
        (f"blog-5f nginx 203.0.113.9 - - {REST}", "not_host_combined_log:address"),
        (f"blog.example.org nginx - 2001:db8::1 - {REST}", "not_host_combined_log:address"),
        (f"blog.example.org:443 nginx 203.0.113.9 - - {REST}", "not_vhost_combined_log:address"),
        (f'203.0.113.9 - - {REST} "-" x', "not_main_log:end"),
        (f"blog.example.org:443 203.0.113.9 - - {REST[:-1]}", "not_vhost_combined_log:agent"),
        ('10.0.0.1 - - [03/Oct/2022:21:59:42 +0200] "GET /a HTTP/1.1" ok 5', "not_combined_log:status"),
    ],
)
def test_a_line_without_a_format_has_the_nearest_one_and_its_first_wrong_field(line: str, reason: str) -> None:
    assert (format_of(line), misfit_of(line).reason) == (None, reason)


@pytest.mark.parametrize("name", ["s3", "alb"])
def test_fields_after_the_last_required_one_may_be_missing(name: str) -> None:
    needed = SAMPLES[name].partition('Firefox/120.0"')
    assert format_of("".join(needed[:2])) == name
    assert fields("".join(needed[:2])) == fields(SAMPLES[name])


def test_forwarded_addresses_are_a_list_or_a_header() -> None:
    both = {f"10.0.0.2, 10.0.0.3,198.51.100.1 - - {REST}", f'198.51.100.1 - - {REST} "10.0.0.2, 10.0.0.3"'}
    assert {fields(line)["forwarded"].replace(" ", "") for line in both} == {"10.0.0.2,10.0.0.3"}
    (traefik,) = (line for name, line in SAMPLES.items() if name == "traefik_json")
    listed = fields(traefik.replace('"ClientHost": "', '"ClientHost": "10.0.0.2, 10.0.0.3,'))
    assert (listed["address"], listed["forwarded"]) == ("203.0.113.9", "10.0.0.2, 10.0.0.3")
    for own in (
        '%{X-Forwarded-For}i %l %u %t "%r" %>s %b',
        '$proxy_add_x_forwarded_for - - [$time_local] "$request" $status $bytes_sent',
    ):
        read = fields(f"6.6.6.6, 203.0.113.9 - - {STAMP} {ASKED} 200 71", formats((own,)))
        assert (read["forwarded"], read["address"], read["bytes"]) == ("6.6.6.6", "203.0.113.9", "71")
    further = formats(('$remote_addr [$time_local] "$request" $status $bytes_sent $body_bytes_sent',))
    assert fields(f"::1 {STAMP} {ASKED} 200 512 71", further)["bytes"] == "512"


@pytest.mark.parametrize(
    ("line", "hour"),
    [
        ('{"ts": 1431857103.5, "msg": "handled request", "status": 200}', None),
        ('{"remote_addr": "::1", "time": "2022-10-03T21:59:42+0200", "status": 200, "request": "-"}', "2022-10-03T19"),
        (
            '{"remote_addr": "::1", "time": "[03/Oct/2022:21:59:42 +0200]", "status": 1, "request": "-"}',
            "2022-10-03T19",
        ),
        (
            '{"remote_addr": "[01/Jan/2020:00:00:00 +0000]", "msec": 1664827182.5, "status": 1, "request": "-"}',
            "2022-10-03T19",
        ),
        ("2022-10-03 19:59:42 ::1 GET /[01/Jan/2020:00:00:00 - 443 - ::1 x - 200 0 0 2", "2022-10-03T19"),
        ("#Date: 2022-10-03 19:59:42", None),
        # The request, as the visitor has sent it, is after a time that tells no offset.
        (SAMPLES["haproxy"].replace("GET /a/", "GET /[01/Jan/2020:00:00:00 +0000]"), "2022-10-03T19"),
        # The user name, chosen by a visitor, is logged before the time.
        (f"203.0.113.9 - a [01/Jan/2020:00:00:00 +0000] {REST}", None),
        ("\0" * 1_000_000 + f"203.0.113.9 - - {REST}", "2022-10-03T19"),
        ("\0" * 1_000_000, None),
        (
            'Oct 13 21:59:42 web1 caddy[9]: {"ts": 1664827182.5, "status": 200, "request": {"client_ip": "::1",'
            ' "uri": "/[01/Jan/2020:00:00:00 +0000]", "method": "GET"}}',
            "2022-10-03T19",
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_hour_of_a_line_is_that_of_its_time_wherever_it_stands(line: str, hour: str | None) -> None:
    assert formats().hour_of(line.encode()) == hour


@pytest.mark.parametrize("quotes", ['"', r"\""])
def test_declarations_of_both_servers_are_read_as_their_configuration_has_them(quotes: str) -> None:
    apache = compile_text("own", '%{Host}i %a %>s [%{cookie}n] %t "%r" "%{Referer}i" %%'.replace('"', quotes))
    assert isinstance(apache, TextFormat)
    assert [field for field, _ in apache.steps][1:] == ["address", "status", "{cookie}n", "time", "request", "referrer"]
    nginx = formats(('${remote_addr}|$time_local|"$request"|$status|$upstream_addr',))
    assert format_of('203.0.113.9|03/Oct/2022:21:59:42 +0200|"GET / HTTP/1.1"|200|-', nginx) == "declared"


@pytest.mark.parametrize(
    "pasted",
    [
        r'LogFormat "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %{ms}T" timed',
        'LogFormat \'%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i" %{ms}T\' timed',
        'LogFormat "%h %l %u %t \\"%r\\" %>s %b\\\n \\"%{Referer}i\\" \\"%{User-Agent}i\\" %{ms}T" timed',
        """log_format main '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" $request_length';""",
        r"""log_format x escape=default "$remote_addr - $remote_user [$time_local] \"$request\" $status"
            ' $body_bytes_sent "$http_referer" "$http_user_agent" $request_length'""",
    ],
)
def test_a_directive_is_pasted_whole(pasted: str) -> None:
    known = formats((pasted,))
    assert format_of(f"203.0.113.9 - - {REST} 7", known) == "declared"
    in_pieces = (r"\"at\": $msec, ", r"\"ip\": \"$remote_addr\", ", r"\"request\": \"$request\", \"status\": $status}")
    objects = formats(("log_format j escape=json '{" + "'\n '".join(in_pieces) + "';",))
    written = '{"at": 1664827182.5, "ip": "::1", "request": "GET / HTTP/1.1", "status": 200}'
    assert format_of(written, objects) == "declared"


@pytest.mark.parametrize(
    ("declaration", "line"),
    [
        (r'%h\t%t\t"%r"\t%>s', f"203.0.113.9\t{STAMP}\t{ASKED}\t200"),
        (r'$host\t$remote_addr\t$msec\t"$request"\t$status', f"b.example\t203.0.113.9\t1664827182.5\t{ASKED}\t200"),
        ('%h %t "%r" 100%% %>s %%D', f"203.0.113.9 {STAMP} {ASKED} 100% 200 %D"),
        ('%h [%{%d/%b/%Y:%T %z}t] "%r" %>s', f"203.0.113.9 {STAMP} {ASKED} 200"),
        ('%h %{%FT%T%z}t "%r" %>s', '203.0.113.9 2022-10-03T21:59:42+0200 "GET / HTTP/1.1" 200'),
        ('$http_x_real_ip [$time_local] "$request" $status', f"203.0.113.9 {STAMP} {ASKED} 200"),
        ('%{X-Real-IP}i %t "%r" %>s', f"203.0.113.9 {STAMP} {ASKED} 200"),
        ('$http_host $remote_addr [$time_local] "$request" $status', f"b.example:80 203.0.113.9 {STAMP} {ASKED} 200"),
        ('%h %{Host}i %t "%r" %>s', f"203.0.113.9 [::1]:8080 {STAMP} {ASKED} 200"),
        ('%h %{msec}t "%r" %>s', f"203.0.113.9 1664827182123 {ASKED} 200"),
        ('%h %{usec}t "%r" %>s', f"203.0.113.9 1664827182123456 {ASKED} 200"),
        ('{"at": $msec, "ip": "$http_x_real_ip", "r": "$request", "s": $status}', f"{{{JSON}}}"),
        ('{"at": $msec, "ip": "$proxy_add_x_forwarded_for", "r": "$request", "s": $status}', f"{{{JSON}}}"),
        (
            r"{\"at\":\"%{%Y-%m-%dT%H:%M:%S%z}t\",\"ip\":\"%a\",\"r\":\"%U\",\"q\":\"%q\",\"m\":\"%m\",\"s\":%>s}",
            f'{{"at":"2022-10-03T21:59:42+0200","q":"","m":"GET",{JSON}}}',
        ),
        # Separated by tabulators, as in LTSV.
        (
            r"time:%t\thost:%h\treq:%r\tstatus:%>s\tua:%{User-Agent}i",
            f"time:{STAMP}\thost:203.0.113.9\treq:GET /a b HTTP/1.1\tstatus:200\tua:Mozilla/5.0 (X11)",
        ),
    ],
)
def test_directives_of_servers_in_declarations_are_read(declaration: str, line: str) -> None:
    known = formats((declaration,))
    read = fields(line, known)
    assert (format_of(line, known), read["address"], read["status"]) == ("declared", "203.0.113.9", "200")
    assert known.hour_of(line.encode()) == "2022-10-03T19"


def test_of_variables_for_one_field_the_one_as_it_was_asked_for_counts() -> None:
    own = '{"at": $msec, "made": "$uri", "asked": "$request_uri", "ip": "$remote_addr", "real": "$http_x_real_ip"'
    known = formats((own + ', "name": "$server_name", "vhost": "$host", "m": "$request_method", "s": $status}',))
    line = '{"at": 1664827182.5, "made": "/index.php", "asked": "/a?b", "ip": "10.0.0.2", "real": "203.0.113.9"'
    read = fields(line + ', "name": "_", "vhost": "b.example", "m": "GET", "s": 200}', known)
    expected = {"request": "GET /a?b HTTP/1.1", "address": "10.0.0.2", "forwarded": "203.0.113.9", "host": "b.example"}
    assert {name: read[name] for name in expected} == expected


@pytest.mark.parametrize("quotes", ["", '"'])
def test_a_header_with_one_address_is_what_a_proxy_forwards(quotes: str) -> None:
    known = formats((f'$remote_addr [$time_local] "$request" $status {quotes}$http_x_real_ip{quotes}',))
    read = fields(f'10.0.0.2 [03/Oct/2022:21:59:42 +0200] "GET / HTTP/1.1" 200 {quotes}203.0.113.9{quotes}', known)
    assert (read["address"], read["forwarded"]) == ("10.0.0.2", "203.0.113.9")


def test_a_declared_host_before_the_address_may_be_an_address() -> None:
    known = formats(
        ('$host $remote_addr - $remote_user [$time_local] "$request" $status $bytes_sent "-" "$http_user_agent"',)
    )
    for host in ("192.0.2.1", "b.example"):
        read = fields(f"{host} 203.0.113.9 - - {REST}", known)
        assert (format_of(f"{host} 203.0.113.9 - - {REST}", known), read["address"]) == ("declared", "203.0.113.9")
    assert format_of(f"203.0.113.9 - - {REST}", known) == "combined"


def test_a_time_that_is_declared_to_come_first_is_not_a_containers() -> None:
    known = formats(('$time_iso8601 $remote_addr - "$request" $status "$http_user_agent"',))
    line = '2022-10-03T21:59:42+02:00 203.0.113.9 - "GET / HTTP/1.1" 200 "[01/Jan/2020:00:00:00 +0000] "'
    assert (format_of(line, known), known.hour_of(line.encode())) == ("declared", "2022-10-03T19")


@pytest.mark.parametrize(
    ("declaration", "what"),
    [
        ("%h %t %>s", "does not have the request"),
        ("%h %h %t %>s", "does not have the address"),
        ("%h %t %r %>s", "the request is not in quotes"),
        ('$remote_addr$remote_user [$time_local] "$request" $status', "nothing separates address and user"),
        ('{"ip": "$remote_addr", "request": "$request", "status": $status}', "does not have the time"),
        ('{"ip": "$remote_addr", ', "is not one JSON object"),
        ("#Fields: date time c-ip cs-method sc-status", "does not have the target"),
        ('%h %{%H:%M}t "%r" %>s', "does not have the time"),
        ('%h %t "%r" %>s %{x}^ti', r"this is no directive: %\{x\}\^ti"),
        ("LogFormat %h", "does not have the address"),
        ("access_log /var/log/nginx/access.log main;", "does not have the address"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused_with_the_reason(declaration: str, what: str) -> None:
    with pytest.raises(LogFormatUnusable, match=what):
        formats((declaration,))


PIECES = (
    *('"', '\\"', "a", "a ", "a,", "a, ", "1.1.1.1, ", "a : ", "a:1 ", "[a] ", "::", "0 ", "- ", "\t", '"a" ', "{["),
)


def seconds_for(line: str, known: LogFormats) -> float:
    log, begin = known.of_log(), time.thread_time()
    log.read(line)
    log.hour_of(line.encode())
    return time.thread_time() - begin


def test_a_hostile_line_takes_no_more_time_than_its_length() -> None:
    known = formats(('$host|$remote_addr - $remote_user [$time_local] "$request" $status $upstream_addr; "$host"',))
    length = 4000
    plain = min(seconds_for(f'203.0.113.9 - - {REST[:-1]}{"a" * length}"', known) for _ in range(3))
    begun = {sample[: found.end()] for sample in SAMPLES.values() for found in re.finditer(r'^|[ \t"\[]', sample)}
    lines = [begin + piece * (length // len(piece)) for begin in begun for piece in PIECES]
    assert len(lines) > 1000
    # A line that takes time by the square of its length takes thousands of times as long.
    slow = [line for line in lines if seconds_for(line, known) > 300 * plain]
    # The machine may have been busy with something else.
    assert [line for line in slow if min(seconds_for(line, known) for _ in range(3)) > 300 * plain] == []
