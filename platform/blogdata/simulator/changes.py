"""Changes to single fields of events, whatever the events are of: what a fault may do to a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blogdata.simulator.text import Flags, Texts, join, join_present, literal, texts


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """Replaces the JSON value of a field in some rows by a text, one for all or a column; None removes the field."""

    path: str
    mask: Flags
    value: str | Texts | None


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Which fields events of one kind have, and how single ones go wrong.

    Args:
        wrong_types: Fields, each with a value of another type.
        numbers: Fields, each with a number or boolean in place of a text or the reverse.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    time: str
    wrong_types: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, str], ...]
    other: tuple[str, tuple[str, ...]]


def pair(path: str, value: Texts, changes: Sequence[FieldChange]) -> Texts:
    """Render a field of some rows as `"name":value`, changed where a change says so; null where it is removed."""
    for change in changes:
        if change.path == path:
            new = literal(change.value) if isinstance(change.value, str) else change.value
            new = pa.scalar(None, pa.large_string()) if new is None else new
            value = pc.if_else(pa.array(change.mask), new, value)
    return join(literal(f'"{path.rpartition(".")[2]}":'), value)


def braces(pairs: Sequence[Texts]) -> Texts:
    """Render an object of its fields; those that are null are left out."""
    return join(literal("{"), join_present(pairs, ","), literal("}"))


def constant(piece: str | None, rows: int) -> list[Texts]:
    """Return a text as a column of so many rows, in a list; an empty one without it."""
    return [] if piece is None else [texts([piece]).take(pa.array(np.zeros(rows, np.int64)))]
