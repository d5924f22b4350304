"""A value that is not shown by mistake."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import NoReturn

_HIDDEN = "***"


@dataclass(frozen=True, repr=False, eq=False)
class Secret:
    """The value of a secret; whatever prints, formats or logs it shows `***`, and it cannot be pickled."""

    _value: str

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return _HIDDEN

    def __eq__(self, other: object) -> bool:
        """Compare two values in a time that does not depend on them."""
        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: pass its name, and fetch it where it is used")
