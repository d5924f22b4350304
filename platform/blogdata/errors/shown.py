r"""Makes texts fit to be shown: one function for each medium.

Others choose texts such as pages, agents and names of files. Shown raw, an escape sequence rewrites the terminal,
a line feed forges the next line, and a character that turns the direction of writing hides what a name is. Here such
characters become visible, as `\x1b` or `\u202e`.
"""

from __future__ import annotations

import json
import re
from typing import Any

INDENT = "    "
"""What each line of a text but the first begins with, so that no value can forge a line of the program's own."""
# Control characters, those that turn the direction or have no width (but the joiners that scripts and emoji need),
# other ends of a line, and surrogates, which no terminal takes.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_FORGED = re.compile(rf"\n(?!{INDENT})")


def line(text: str) -> str:
    """Return a text as one line, for a cell of a table, a header or a line of a log."""
    return _HIDDEN.sub(_escape, text)


def block(text: str) -> str:
    """Return a text of one or more lines, for a terminal or an error; all lines but the first are indented."""
    return _FORGED.sub(f"\n{INDENT}", "\n".join(map(line, text.split("\n"))))


def message(text: str, longest: int) -> str:
    """Return a text as one line for mails and chats, which do not know escapes: what cannot be shown is a space."""
    kept = " ".join(_HIDDEN.sub(" ", text[: 4 * longest]).split())
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"


def json_text(value: Any) -> str:
    """Return a value as JSON; characters that cannot be shown are escaped, so it has the same value everywhere."""
    written = json.dumps(value, indent=2, default=str, ensure_ascii=False)
    # Line feeds are the indentation's: within a text JSON has escaped them.
    return _HIDDEN.sub(lambda match: match[0] if match[0] == "\n" else json.dumps(match[0])[1:-1], written)


def markdown(text: str) -> str:
    """Return a text as preformatted Markdown, in which nothing is markup."""
    return "\n".join(f"{INDENT}{row}" for row in block(text).split("\n"))


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    return _SHORT.get(sign) or sign.encode("unicode_escape", "surrogatepass").decode()
