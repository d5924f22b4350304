"""A request is parsed into method, page and query, and a referrer into its host."""

from __future__ import annotations

import pytest

from assets.bronze import request_targets

REQUESTS = {
    "GET /a?b=c?d HTTP/1.1": ("GET", "/a", "b=c?d"),
    "GET / HTTP/3.0": ("GET", "/", ""),
    "GET //a/%7Eb/../c HTTP/1.1": ("GET", "//a/%7Eb/../c", ""),
    "GET /a b HTTP/1.1": ("GET", "/a b", ""),
    "GET /a HTTP/1.0 b HTTP/1.1": ("GET", "/a HTTP/1.0 b", ""),
    "GET /a b": ("GET", "/a", ""),
    "GET /a b c": ("", "", ""),
    "GET /a": ("", "", ""),
    "": ("", "", ""),
    "-": ("", "", ""),
    r"\x16\x03\x01": ("", "", ""),
    "GET  HTTP/1.1": ("GET", "", ""),
    "OPTIONS * HTTP/1.0": ("OPTIONS", "*", ""),
    "CONNECT a.example:443 HTTP/1.1": ("CONNECT", "a.example:443", ""),
    "GET http://ann:pw@a.example:8080/b?c HTTP/1.1": ("GET", "/b", "c"),
    "GET HTTPS://a.example//b HTTP/1.1": ("GET", "//b", ""),
    "GET http://a.example?c=/d HTTP/1.1": ("GET", "/", "c=/d"),
    "GET /a?http://a.example/ HTTP/1.1": ("GET", "/a", "http://a.example/"),
}
PAGES = {
    "/café": ("/caf%c3%a9", "/caf%C3%A9", r"/caf\xc3\xa9", r"/caf\xC3%a9", "/café"),
    "/€/𝄞/\U0010ffff": ("/%e2%82%ac/%F0%9D%84%9E/%F4%8F%BF%BF", r"/\xe2\x82\xac/𝄞/%f4%8f%bf%bf"),
    "/%2F%3F%23%25%26": ("/%2f%3f%23%25%26", "/%2F%3F%23%25%26"),
    "/%E9/%FF": ("/%e9/%ff", r"/\xe9/\xff"),
    "/%ED%A0%80%C0%AF%E0%80%AF%F4%90%80%80": ("/%ed%a0%80%c0%af%e0%80%af%f4%90%80%80",),
    "/%E2%82é": ("/%e2%82%c3%a9",),
    "/%22%5C%5Cx41": (r"/\"\\\\x41", r"/\x22\x5c\x5cx41"),
    "/%zz%%4": ("/%zz%%4",),
    "/%00%0A%20%7E~+": ("/%00%0a%20%7e~+",),
}
HOSTS = {
    "-": None,
    "": None,
    "http://example.org": "example.org",
    "https://Search.Example.org:8080/find?q=1": "search.example.org",
    "android-app://com.example/": "com.example",
    "example.org/path": "example.org",
    "example.org:80": "example.org",
    "http://[::1]:80/": "[::1]",
    "() { :;}; x": None,
    "http://user:secret@example.org/": "example.org",
    "https://müller.example/x": "müller.example",
    r"https://M\xc3\xbcller.example/x": "müller.example",
    "https://M%C3%9Cller.example": "müller.example",
    r"https://m\xfcller.example/": None,
    "https://a%2Fb.example/": None,
    "https://a b.example/": None,
    "http://": None,
    "about:blank": None,
    "javascript:x": None,
    "?a": None,
}


@pytest.mark.parametrize(("request_", "parts"), REQUESTS.items())
def test_a_request_has_method_page_and_query(request_: str, parts: tuple[str, str, str]) -> None:
    target = request_targets.target_of(request_)
    assert target[:3] == parts
    is_absolute = "://" in request_.partition("?")[0]
    assert target.host.removesuffix(":8080") == ("a.example" if is_absolute else "")


@pytest.mark.parametrize(("page", "forms"), PAGES.items())
def test_a_page_has_one_name(page: str, forms: tuple[str, ...]) -> None:
    assert {request_targets.target_of(f"GET {form} HTTP/1.1").path for form in forms} == {page}


@pytest.mark.parametrize(("referrer", "host"), HOSTS.items())
def test_a_referrer_has_its_host(referrer: str, host: str | None) -> None:
    assert request_targets.referring_host(referrer) == host
