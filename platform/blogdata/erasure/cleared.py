"""What the clearing of a place has done, as counts; never a value.

It is noted before it is done: whoever goes on after a kill finds only the rest, and the counts are those of all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Cleared:
    """What was cleared of one place.

    Args:
        left: Why it was not cleared; empty: it was.
    """

    place: str
    files: int = 0
    rows: int = 0
    gone: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    left: str = ""

    @property
    def is_empty(self) -> bool:
        """There was nothing to clear."""
        return self == Cleared(place=self.place)

    def after(self, noted: Cleared) -> Cleared:
        """Return what was done in all, if this was noted after a kill and `noted` before it."""
        return Cleared(
            place=self.place,
            files=max(self.files, noted.files),
            rows=max(self.rows, noted.rows),
            gone={**noted.gone, **self.gone},
            note=noted.note or self.note,
        )


Note = Callable[[Cleared], None]
"""Notes what is about to be cleared."""


def unnoted(_: Cleared) -> None:
    """Note nothing."""
