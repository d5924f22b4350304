"""Finds the declaration of a log format in a directive that is pasted from a server's configuration.

nginx joins the strings of a `log_format`; Apache's `LogFormat` has one string and a name.

Sources: nginx, "Module ngx_http_log_module"; Apache HTTP Server, "Module mod_log_config".
"""

from __future__ import annotations

import re

from blogdata.patterns.ingestion.log_declarations import unusable

_STRING = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_APACHE = re.compile(rf"LogFormat\s+({_STRING})(?:\s+[\w.-]+)?", re.IGNORECASE | re.DOTALL)
_NGINX = re.compile(rf"(?:(?:log_format\s+)?[\w-]+\s+)?(?:escape=\w+\s+)?((?:{_STRING}\s*)+);?", re.DOTALL)
_DIRECTIVES = re.compile(r"(?:log_?format|access_log|customlog|transferlog)\s", re.IGNORECASE)


def declaration_in(text: str) -> str:
    """Return the declaration in a directive, as the server joins it; any other text as it is.

    Raises:
        LogFormatUnusable: It is a directive, but not one whole directive that declares a format.
    """
    text = text.strip()
    is_directive = _DIRECTIVES.match(text) is not None
    if not is_directive and not text.endswith(";"):
        return text
    found = _APACHE.fullmatch(text) or _NGINX.fullmatch(text)
    if found is None and is_directive:
        raise unusable(text, "it is not one whole directive `log_format name '…' '…';` or `LogFormat \"…\" name`")
    if found is None:
        return text
    # Both servers join a line that ends with a backslash.
    strings = re.findall(_STRING, found[1], re.DOTALL)
    return re.sub(r"\\(['\"\\\n])", lambda escaped: escaped[1].strip("\n"), "".join(one[1:-1] for one in strings))
