"""The keys of a deployment that rows follow from: each publication says which one it was, so a replaced key is noticed.

Patterns: Pseudo-Anonymizer (:mod:`blogdata.patterns.security.pseudo_anonymizer`), Encryptor
(:mod:`blogdata.patterns.security.encryptor`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blogdata.contract.publication import Entry
from blogdata.errors import ConfigurationError
from blogdata.errors.remedies import Remedy, Rotate
from blogdata.operate import secrets
from blogdata.operate.config import Settings
from blogdata.patterns.security.pseudo_anonymizer import derived_key
from blogdata.patterns.security.secrets_pointer import Secret

ROTATING = "rotating"
"""Guard that a rotation lifts: partitions are computed by another key than others of their dataset."""
_MARK, _DIGITS = "mark", 8


@dataclass(frozen=True, kw_only=True)
class Key:
    """A version of a key."""

    version: int
    secret: Secret

    @property
    def mark(self) -> str:
        """The version and what tells this key from another one of that version, without its value."""
        return f"{self.version}:{derived_key(self.secret.reveal(), _MARK).hex()[:_DIGITS]}"


def current(settings: Settings, name: str) -> Key:
    """Read the current version of a key; the first one is generated if there is none."""
    secrets.read(settings, name)
    version = secrets.pointer(settings, name).versions()[-1]
    return Key(version=version, secret=secrets.read(settings, name, version))


def renew(settings: Settings, name: str, after: Key) -> None:
    """Make another version of a key, unless another process has done it meanwhile."""
    secrets.pointer(settings, name).add(secrets.random(), after=after.version)


def require_same(name: str, key: Key, published: Mapping[str, Entry]) -> None:
    """Refuse a key if published partitions of a dataset were computed by another one."""
    kept = [entry for entry in published.values() if not entry.expired]
    marks = {entry.judged_by.get(name, key.mark) for entry in kept} - {key.mark}
    if marks:
        raise ConfigurationError(
            what=f"the tokens of {kept[0].dataset} were computed by {name} {', '.join(sorted(marks))}, which is"
            f" {key.mark} now: everybody would get another token, as if they were somebody new",
            where=name,
            next_step=Remedy(
                "bring the earlier key back; or if it is to be another one, compute all tokens again by it: ",
                Rotate(key=name),
            ),
        )
