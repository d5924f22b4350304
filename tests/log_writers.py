"""Writes one request as each server formats it, independent of the platform's code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

from oracle_logs import log_time, request_of

HOST = "blog.example.org"


def line_of(name: str, request: Mapping[str, str]) -> str:
    """Format a request as a log line."""
    moment = log_time(request["time"])
    assert moment is not None
    if name in _TEXTS:
        iso = f"{moment:%Y-%m-%dT%H:%M:%S}.123456Z"
        local = f"{moment:%d/%b/%Y:%H:%M:%S}"
        return _TEXTS[name].format(**request, combined=_COMBINED.format(**request), host=HOST, iso=iso, local=local)
    return _COLUMNS[name](request, moment) if name in _COLUMNS else json.dumps(_OBJECTS[name](request, moment))


def request_in(line: str) -> dict[str, str] | None:
    """Parse a line in combined log format; None if no server could write its request in another format."""
    found = request_of(line)
    if isinstance(found, str) or found["format"] != "combined":
        return None
    words = {name: found[name].strip(' "[]') for name in ("address", "time", "status", "bytes")}
    texts = {name: found[name][2:-1] for name in ("request", "referrer", "agent")}
    method, *targets = texts["request"].split(" ")
    return {**words, **texts} if method.isalpha() and len(targets) == 2 and "?-" not in targets[0] else None


_COMBINED = '{address} - - [{time}] "{request}" {status} {bytes} "{referrer}" "{agent}"'
_TEXTS = {
    "combined": "{combined}",
    "common": '{address} - - [{time}] "{request}" {status} {bytes}',
    "combined_duration": "{combined} 2512",
    "combined_quoted_duration": '{combined} "0.025"',
    "main": '{combined} "203.0.113.7, 10.0.0.9"',
    "main_duration": '{combined} "-" 0.025',
    "main_quoted_duration": '{combined} "-" "0.025"',
    "vhost_combined": "{host}:443 {combined}",
    "host_combined": "{host} {combined}",
    "traefik": '{combined} 17 "blog@docker" "http://10.0.0.7:80" 25ms',
    "ingress_nginx": "{combined} 512 0.025 [blog-web-80] [] 10.0.0.7:80, 10.0.0.8:80 0, 71 0.010, 0.015 502, 200 5f3a",
    "alb": "https {iso} app/blog/50dc6c495c0c9188 {address}:2817 10.0.0.7:80 0.000 0.025 0.000 {status} {status} 34"
    ' {bytes} "{request}" "{agent}" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337262" "-" "-" 0 -',
    "s3": '79a59df9 blog [{time}] {address} - 3E57427F33A59F07 WEBSITE.GET.OBJECT a "{request}" {status} - {bytes} 113'
    ' 7 6 "{referrer}" "{agent}" - s9lzHYrFp76ZVxRcpX9 SigV2 - AuthHeader blog.example.org TLSv1.2',
    "haproxy": "{address}:33317 [{local}.123] https-in~ blog/web1 0/0/1/24/25 {status} {bytes} - - ---- 1/1/0/0/0 0/0"
    ' "{request}"',
    "declared": '"{address}" - "-" "[{time}]" "{request}" "{status}" "{bytes}" "{referrer}" "{agent}" "-" "0.025"',
}


def _cloudfront(request: Mapping[str, str], moment: datetime) -> str:
    method, path, query, _ = _words(request)
    agent = quote(request["agent"] or "-", safe="/:;,()+@&=?!*'~#[]{}$|^`<>\\\"")
    columns = [f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}", "FRA2-C1", request["bytes"], request["address"], method]
    columns += ["d111.cloudfront.net", path, request["status"], request["referrer"], agent, query]
    columns += ["-", "Hit", "x==", HOST, "https", "23", "0.001", "-", "TLSv1.2", "x", "Hit", "HTTP/2.0", "-", "-"]
    return "\t".join([*columns, "11040"])


def _iis(request: Mapping[str, str], moment: datetime) -> str:
    method, path, query, _ = _words(request)
    agent = request["agent"].replace(" ", "+") or "-"
    columns = (f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}", "10.0.0.7", method, path, query, "443", "-")
    return " ".join((*columns, request["address"], agent, request["referrer"], request["status"], "0", "0", "25"))


def _caddy(request: Mapping[str, str], moment: datetime) -> object:
    method, target, protocol = request["request"].split(" ")
    headers = {"User-Agent": request["agent"], "Referer": request["referrer"]}
    sent = {name: [value] for name, value in headers.items() if value != "-"}
    asked = {"remote_ip": request["address"], "remote_port": "41342", "proto": protocol, "method": method}
    return {
        "level": "info",
        "ts": moment.timestamp() + 0.524,
        "logger": "http.log.access.log0",
        "msg": "handled request",
        "request": {**asked, "host": HOST, "uri": target, "headers": {**sent, "Accept": ["*/*"]}},
        "duration": 0.000929675,
        "size": int(request["bytes"].replace("-", "0")),
        "status": int(request["status"]),
    }


def _traefik_json(request: Mapping[str, str], moment: datetime) -> object:
    method, target, protocol = request["request"].split(" ")
    return {
        "ClientAddr": f"{request['address']}:5555",
        "ClientHost": request["address"],
        "DownstreamContentSize": int(request["bytes"].replace("-", "0")),
        "DownstreamStatus": int(request["status"]),
        "RequestHost": HOST,
        "RequestMethod": method,
        "RequestPath": target,
        "RequestProtocol": protocol,
        "StartUTC": f"{moment:%Y-%m-%dT%H:%M:%S}.123456789Z",
        "request_Referer": request["referrer"],
        "request_User-Agent": request["agent"],
    }


def _nginx_json(request: Mapping[str, str], moment: datetime) -> object:
    method, target, _ = request["request"].split(" ")
    return {
        "time": f"{moment:%Y-%m-%dT%H:%M:%S}+00:00",
        "remote_addr": request["address"],
        "request_method": method,
        "request_uri": target,
        "status": request["status"],
        "body_bytes_sent": request["bytes"],
        "http_referer": request["referrer"],
        "http_user_agent": request["agent"],
        "host": HOST,
    }


def _azure(request: Mapping[str, str], moment: datetime) -> object:
    method, target, _ = request["request"].split(" ")
    asked = {"httpMethod": method, "requestUri": f"https://{HOST}:443{target}", "hostName": HOST}
    known = {"clientIp": "address", "userAgent": "agent", "referer": "referrer", "httpStatusCode": "status"}
    properties = {**asked, **{name: request[field] for name, field in known.items()}, "responseBytes": "134"}
    return {"time": f"{moment:%Y-%m-%dT%H:%M:%S}.1234567Z", "properties": properties}


def _google(request: Mapping[str, str], moment: datetime) -> object:
    method, target, _ = request["request"].split(" ")
    asked = {"requestMethod": method, "requestUrl": f"https://{HOST}{target}", "status": int(request["status"])}
    known = {"remoteIp": "address", "userAgent": "agent", "referer": "referrer"}
    kept = {name: request[field] for name, field in known.items() if request[field] != "-"}
    return {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.123456Z", "httpRequest": {**asked, **kept}}


def _words(request: Mapping[str, str]) -> tuple[str, str, str, str]:
    method, target, protocol = request["request"].split(" ")
    path, _, query = target.partition("?")
    return method, path, query or "-", protocol


_COLUMNS = {"cloudfront": _cloudfront, "iis": _iis}
_OBJECTS = {
    "caddy": _caddy,
    "traefik_json": _traefik_json,
    "nginx_json": _nginx_json,
    "azure": _azure,
    "google": _google,
}
NAMES = (*_TEXTS, *_COLUMNS, *_OBJECTS)
