"""Compiles the columns of a log that names them in a `#Fields` line, such as those of CloudFront and IIS.

Columns are separated by a space or a tabulator, and no value has either. A declaration is the `#Fields` line itself.

Sources: W3C, "Extended Log File Format"; Amazon CloudFront, "Standard log file fields"; IIS, "W3C logging".
"""

from __future__ import annotations

from blogdata.patterns.ingestion.log_declarations import LogFormat, unusable

HEADER = "#Fields:"
DECLARED = {
    "cloudfront": f"{HEADER} date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status"
    " cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header"
    " cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type"
    " cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type"
    " sc-content-type sc-content-len sc-range-start sc-range-end",
    "iis": f"{HEADER} date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent)"
    " cs(Referer) sc-status sc-substatus sc-win32-status time-taken",
}
_FIELDS = {
    "date": "date",
    "time": "time",
    "c-ip": "address",
    "cs-method": "method",
    "cs-uri": "target",
    "cs-uri-stem": "target",
    "cs-uri-query": "query",
    "sc-status": "status",
    "sc-bytes": "bytes",
    "cs-host": "host",
    "cs(host)": "host",
    "x-host-header": "host",
    "x-forwarded-for": "forwarded",
    "cs(x-forwarded-for)": "forwarded",
    "cs(referer)": "referrer",
    "cs(user-agent)": "agent",
}
_PATTERNS = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d(?:\.\d++)?+",
    "method": r"[A-Z-]++",
    "status": r"\d{3}",
    "bytes": r"(?:\d++|-)",
    "s-ip": r"[0-9A-Fa-f.:%]++",
    "s-port": r"\d++",
    "c-port": r"(?:\d++|-)",
}
_REQUIRED = ("date", "time", "address", "method", "target", "status")
_CLOUDFRONT = "x-edge-location"
_BEFORE = r"[ \t]"


def columns_of(declaration: str) -> list[str]:
    """List the names of the columns, in small letters."""
    return declaration.removeprefix(HEADER).lower().split()


def reads_columns(declaration: str, header: str) -> bool:
    """Return whether the format of a declaration reads lines with the columns of a `#Fields` line.

    What follows its last field of a request may be missing or another one, unless it is such a field, too.
    """
    known, found = columns_of(declaration), columns_of(header)
    needed = max(at for at, column in enumerate(known, start=1) if column in _FIELDS)
    is_open = len(known) > needed and not any(column in _FIELDS for column in found[needed:])
    return known == found or (is_open and known[:needed] == found[:needed])


def compile_columns(name: str, declaration: str) -> LogFormat:
    """Compile a `#Fields` line.

    Raises:
        LogFormatUnusable: A field of a request is missing.
    """
    columns = columns_of(declaration)
    fields = [_FIELDS.get(column, "") for column in columns]
    for field in _REQUIRED:
        if fields.count(field) != 1:
            raise unusable(declaration, f"it does not have the {field} of a request once")
    # CloudFront's own host comes first, the one that was asked for later.
    taken = {field: at for at, field in enumerate(fields) if field}
    last = max(taken.values())
    steps, groups = [], []
    for at, column in enumerate(columns[: last + 1]):
        field = fields[at]
        is_read = bool(field) and taken[field] == at
        pattern = _PATTERNS.get(field or column, r"[^\s]++")
        steps.append((field if is_read else column, (_BEFORE if at else "") + (f"({pattern})" if is_read else pattern)))
        groups += [field] if is_read else []
    if last + 1 < len(columns):
        # Servers have added columns over the years; what follows the last one that is needed may be missing.
        steps[-1] = (steps[-1][0], steps[-1][1] + r"(?:[ \t].*+)?+")
    coding = "percent" if _CLOUDFRONT in columns else "plus"
    return LogFormat(name=name, steps=tuple(steps), groups=tuple(groups), coding=coding)
