"""Decodes the escapes that texts are written with, so that a value is found however its characters were escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

_JSON = re.compile(rb'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
_OCTETS = re.compile(rb"(?:\\x[0-9a-fA-F]{2})+")
_PERCENT = re.compile(rb"(?:%[0-9a-fA-F]{2})+")
_ENTITY = re.compile(rb"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")
_WRAPPED = re.compile(rb"([0-9A-Za-z+/]{60,76})\r?\n(?=[0-9A-Za-z+/])")
_CONTROLS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_NAMED = {b"amp": "&", b"lt": "<", b"gt": ">", b"quot": '"', b"apos": "'"}
_BUILDS_OTHERS = frozenset("\\%&#;uxX0123456789abcdefABCDEF")
"""Characters that escapes are written with: behind one that decodes to them, there may be another one."""
_LONGEST = 20
"""Characters that one character is written with at most, by escapes within escapes."""
_DEEPEST = 3
_LAST = 0x10FFFF


class Escapes:
    """The escapes that can hide some values: those of characters that occur in them, or that others are written with.

    Most escapes in a text are of blanks and quotation marks; to decode them all would take longer than everything else.
    """

    def __init__(self, values: Iterable[str]) -> None:
        known = list(values)
        characters = _BUILDS_OTHERS.union(*known)
        octets = {octet for one in characters for octet in one.encode()}
        simple = "".join(re.escape(one) for one in sorted(characters & {*'"\\/'}))
        percent = "|".join(f"{octet:02x}" for octet in sorted(octets))
        self._margin = max((len(value.encode()) for value in known), default=0) * _LONGEST
        self._relevant = re.compile(
            rf"\\(?:u[0-9a-f]{{4}}|[{simple}])|(?:%|\\x)(?:{percent})|&(?:#|amp;|lt;|gt;|quot;|apos;)"
            rf"|(?<=[0-9a-z+/]{{60}})\r?\n(?=[0-9a-z+/])".encode(),
            re.IGNORECASE,
        )

    def near(self, content: bytes) -> bytes:
        """Return what stands around such escapes; values that are not near one are not hidden by any."""
        spans: list[list[int]] = []
        for found in self._relevant.finditer(content):
            begin, end = max(0, found.start() - self._margin), found.end() + self._margin
            if spans and begin <= spans[-1][1]:
                spans[-1][1] = end
            else:
                spans.append([begin, end])
        return b"\0".join(content[begin:end] for begin, end in spans)


def unescaped(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Decode escapes, those within others included.

    Args:
        content: A text, or bytes with texts in them.

    Yields:
        The names of the escapes, outer ones first, and what is then readable.
    """
    known = {content}
    found = [("", content)]
    for _ in range(_DEEPEST):
        found = [(how, text) for names, outer in found for how, text in _once(names, outer) if text not in known]
        known.update(text for _, text in found)
        yield from found


def _once(names: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    for name, decode in _DECODERS.items():
        yield f"{names}, {name}" if names else name, decode(content)


def _json(content: bytes) -> bytes:
    return _JSON.sub(_character, content) if b"\\" in content else content


def _character(found: re.Match[bytes]) -> bytes:
    text = found[0]
    if text[1:2] != b"u":
        return _CONTROLS.get(text[1:], text[1:])
    # Characters beyond the first 65,536 are written as pairs.
    return bytes.fromhex(text.replace(b"\\u", b"").decode()).decode("utf-16-be", "replace").encode()


def _percent(content: bytes) -> bytes:
    decoded = _PERCENT.sub(lambda found: bytes.fromhex(found[0].replace(b"%", b"").decode()), content)
    return decoded if b"%" in content else content


def _octets(content: bytes) -> bytes:
    return _OCTETS.sub(lambda found: bytes.fromhex(found[0].replace(b"\\x", b"").decode()), content)


def _entities(content: bytes) -> bytes:
    return _ENTITY.sub(_entity, content) if b"&" in content else content


def _entity(found: re.Match[bytes]) -> bytes:
    if found[3]:
        return _NAMED[found[3]].encode()
    number = int(found[1]) if found[1] else int(found[2], 16)
    return chr(number).encode("utf-8", "replace") if number <= _LAST else found[0]


def _unwrapped(content: bytes) -> bytes:
    return _WRAPPED.sub(rb"\1", content)


_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "JSON escapes": _json,
    "servers' escapes": _octets,
    "percent escapes": _percent,
    "HTML's entities": _entities,
    "lines of base64": _unwrapped,
}
