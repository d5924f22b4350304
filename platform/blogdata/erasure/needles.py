"""Counts many values in bytes at once, in every form in which software writes them.

A search value by value would read everything hundreds of times. So each long pattern is found by eight of its bytes:
all 8-byte windows of the content are compared with all patterns in one pass of numpy, whose time does not depend on the
number of patterns (a Rabin-Karp search without the hash: https://doi.org/10.1147/rd.312.0249).
"""

from __future__ import annotations

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

PLAIN = "as it is"
_WINDOW = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_TABLE_BITS = 20


class Needles:
    """The values to find, in all of their forms.

    A value of fewer than eight bytes counts only as a whole word, as it is part of too many others; one of fewer than
    seven is not found in base64, one of fewer than four neither in UTF-16 nor as hex digits.

    Args:
        values: The values; empty ones are left out.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._forms: dict[bytes, str] = {}
        for value in sorted(set(values) - {""}):
            for form, how in _forms(value):
                self._forms.setdefault(form, how)

    @cached_property
    def longest(self) -> int:
        """Length of the longest form in bytes."""
        return max(map(len, self._forms), default=0)

    def count(self, content: bytes | memoryview) -> Counter[str]:
        """Count the values in some bytes.

        Args:
            content: The bytes.

        Returns:
            Form, such as `base64`, to the number of times that a value occurs in it.
        """
        found: Counter[str] = Counter()
        if self._words is not None:
            found[PLAIN] += sum(1 for _ in self._words.finditer(content))
        octets = np.frombuffer(content, np.uint8)
        for key, positions in self._candidates(octets):
            for offset, pattern, how in self._by_key[key]:
                found[how] += _matches(octets, positions - offset, pattern)
        return +found

    @cached_property
    def _words(self) -> re.Pattern[bytes] | None:
        short = [re.escape(form) for form, how in self._forms.items() if len(form) < _WINDOW and how == PLAIN]
        return re.compile(rb"(?<![0-9A-Za-z])(?:" + b"|".join(short) + rb")(?![0-9A-Za-z])") if short else None

    @cached_property
    def _by_key(self) -> Mapping[int, list[tuple[int, Any, str]]]:
        """Window of eight bytes to the patterns that are found by it: its offset in each, their bytes and form."""
        forms = [form for form in self._forms if len(form) >= _WINDOW]
        shared = Counter(window for form in forms for window in set(_windows(form)))
        found = defaultdict(list)
        for form in forms:
            windows = list(enumerate(_windows(form)))
            # The least common one; the last of several, as ids often begin alike.
            offset, window = min(reversed(windows), key=lambda each: shared[each[1]])
            key = int.from_bytes(window, "little")
            found[key].append((offset, np.frombuffer(form, np.uint8), self._forms[form]))
        return found

    @cached_property
    def _keys(self) -> Any:
        return np.array(sorted(self._by_key), np.uint64)

    @cached_property
    def _table(self) -> Any:
        table = np.zeros(1 << _TABLE_BITS, np.bool_)
        table[_slots(self._keys)] = True
        return table

    def _candidates(self, octets: Any) -> Iterator[tuple[int, Any]]:
        """Find where the windows of patterns are: each window that occurs, with its positions."""
        found: defaultdict[int, list[Any]] = defaultdict(list)
        for first in range(_WINDOW if len(self._keys) else 0):
            size = (len(octets) - first) // _WINDOW
            if size <= 0:
                break
            windows = octets[first : first + size * _WINDOW].view("<u8")
            (maybe,) = np.nonzero(self._table[_slots(windows)])
            if not len(maybe):
                continue
            seen = windows[maybe]
            maybe = maybe[self._keys[np.searchsorted(self._keys, seen).clip(max=len(self._keys) - 1)] == seen]
            for key in set(windows[maybe].tolist()):
                found[key].append(maybe[windows[maybe] == key] * _WINDOW + first)
        for key, positions in found.items():
            yield key, np.concatenate(positions)


def _slots(keys: Any) -> Any:
    return (keys * _MULTIPLIER) >> np.uint64(64 - _TABLE_BITS)


def _windows(form: bytes) -> Iterator[bytes]:
    return (form[at : at + _WINDOW] for at in range(len(form) - _WINDOW + 1))


def _matches(octets: Any, starts: Any, pattern: Any) -> int:
    starts = starts[(starts >= 0) & (starts + len(pattern) <= len(octets))]
    for number, octet in enumerate(pattern):
        starts = starts[octets[starts + number] == octet]
    return len(starts)


def _forms(value: str) -> Iterator[tuple[bytes, str]]:
    """List the forms of a value whose bytes are fixed; escapes vary, and are decoded in the content instead."""
    plain = value.encode()
    yield plain, PLAIN
    encoded = [(value.encode("utf-16-le"), "UTF-16"), (value.encode("utf-16-be"), "UTF-16")]
    encoded += [(plain.hex().encode(), "hex"), (plain.hex().upper().encode(), "hex")]
    encoded += [(form, "base64") for form in _in_base64(plain)]
    yield from ((form, how) for form, how in encoded if len(form) >= _WINDOW)


def _in_base64(plain: bytes) -> Iterator[bytes]:
    """Encode some bytes wherever they begin within a group of three, without what their neighbours decide."""
    for before in range(3):
        after = -(before + len(plain)) % 3
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(bytes(before) + plain + bytes(after))
            yield text[(0, 2, 3)[before] : len(text) - (0, 2, 3)[after]]
