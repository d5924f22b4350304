"""Lines of access logs as tests write them, and the resulting rows."""

from __future__ import annotations

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:24.0) Gecko/20100101 Firefox/24.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 7_1_2 like Mac OS X) AppleWebKit/537.51.2 (KHTML, like Gecko)"
    " Version/7.0 Mobile/11D257 Safari/9537.53"
)


def line(
    request: str = "GET /blog/a?x=1 HTTP/1.1",
    *,
    status: str = "200",
    size: str = "123",
    agent: str = FIREFOX,
    referrer: str = "-",
    address: str = "10.0.0.1",
    time: str = "17/May/2015:10:05:03 +0000",
    host: str = "",
) -> str:
    return f'{host}{address} - - [{time}] "{request}" {status} {size} "{referrer}" "{agent}"'


FILTERED = {
    "a page": (line(), None),
    "not modified": (line(status="304"), None),
    "a part of a page": (line(status="206"), None),
    "over QUIC": (line("GET /blog/a HTTP/3.0"), None),
    "spaces in the target": (line("GET /blog/a b HTTP/1.1"), None),
    "a line that ends as in Windows": (line() + "\r", None),
    "a page that names an asset in its query": (line("GET /a?b=.css HTTP/1.1"), None),
    "a word that only contains feed": (line("GET /feedback HTTP/1.1"), None),
    "a page of robots": (line("GET /blog/robots.txt.html HTTP/1.1"), None),
    "posted": (line("POST /blog/a HTTP/1.1"), "method"),
    "head": (line("HEAD / HTTP/1.1"), "method"),
    "no request": (line("-", status="408"), "method"),
    "an empty request": (line("", status="400"), "method"),
    "noise for a request": (line(r"\x16\x03\x01"), "method"),
    "an old request": (line("GET /"), "method"),
    "not found": (line(status="404"), "status"),
    "moved": (line(status="301"), "status"),
    "method comes before status": (line("POST / HTTP/1.1", status="500"), "method"),
    "style": (line("GET /a.css?v=3 HTTP/1.1"), "asset"),
    "upper case picture": (line("GET /A.PNG HTTP/1.1"), "asset"),
    "robots": (line("GET /robots.txt HTTP/1.1", address="10.0.0.9"), "asset"),
    "a page for who reads robots": (line(address="10.0.0.9"), "crawler"),
    "robots asked for by a robot": (line("GET /robots.txt HTTP/1.1", agent="Googlebot/2.1"), "asset"),
    "feed": (line("GET /blog/feed/ HTTP/1.1"), "feed"),
    "feed by suffix": (line("GET /news.rss HTTP/1.1"), "feed"),
    "feed by name": (line("GET /blog/index.xml HTTP/1.1"), "feed"),
    "feed by query": (line("GET /?flav=atom HTTP/1.1"), "feed"),
    "no agent": (line(agent="-"), "crawler"),
    "empty agent": (line(agent=""), "crawler"),
    "a bot": (line(agent="Mozilla/5.0 (compatible; BingBot/2.0)"), "crawler"),
    "a library": (line(agent="Go-http-client/1.1"), "crawler"),
    "one that needs no word for it": (line(agent="Mozilla/5.0 (compatible; Ezooms/1.0; help@moz.com)"), "crawler"),
    "a browser without a window": (line(agent=FIREFOX.replace("Firefox", "HeadlessChrome")), "crawler"),
    "a phone": (line(agent="Mozilla/5.0 (Linux; Android 9; CUBOT_X18_Plus) Chrome/80.0 Mobile Safari/537.36"), None),
}

UNFIT = [
    ('{"remote_addr": "10.0.0.1", "time": "2015-05-17T10:05:03Z", "status": 200}', "not_nginx_json_log:request"),
    ('{"request": {"remote_ip": "10.0.0.1"}, "ts": 1431857103.5, "status": 200}', "not_caddy_log:request"),
    ('{"request": {"remote_ip": "10.0.0.1"', "not_nginx_json_log:object"),
    ('{"remote_addr": "10.0.0.1", "time": "noon", "status": 200, "request": "GET /"}', "not_nginx_json_log:time"),
    ("2015-05-17 10:05:03 10.0.0.7 GET /a - 443 - 10.0.0.1 Mozilla/5.0 - ok 0 0 25", "not_iis_log:status"),
    ("2015-05-17\t10:05:03\tFRA2-C1\t-\t10.0.0.1\tGET\td.net\t/a\tok", "not_cloudfront_log:status"),
    ("2015-02-31 10:05:03 10.0.0.7 GET /a - 443 - 10.0.0.1 Mozilla/5.0 - 200 0 0 25", "not_iis_log:time"),
    ("https 2015-05-17T10:05:03Z app/blog/50 10.0.0.1:2817 10.0.0.7:80 0 0 0 - 200", "not_alb_log:bytes_received"),
]
