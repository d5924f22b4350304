"""The keys of a deployment that rows follow from: each publication says which one it was, so a replaced key is noticed.

A Spark session is given the functions that encrypt and decrypt; the server reads the keys, by the names of secrets.

Patterns: Pseudo-Anonymizer (:mod:`blogdata.patterns.security.pseudo_anonymizer`), Encryptor
(:mod:`blogdata.patterns.security.encryptor`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, Rotate, Run
from blogdata.lake.commit import Entry
from blogdata.patterns.security.encryptor import DECRYPT, ENCRYPT
from blogdata.patterns.security.pseudo_anonymizer import derived_key
from blogdata.secrets.secrets_pointer import Secret
from blogdata.services import secrets
from blogdata.services.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


_AGAIN = Run(datasets=("DATASET",))
_UNKNOWN_SOURCE = "DATA_SOURCE_NOT_FOUND"
_NO_KEY = "BLOGDATA_NO_KEY"
_NOT_AUTHENTIC = "BLOGDATA_NOT_AUTHENTIC"


class CannotDecrypt(PlatformError):
    """Raised when a key is gone, or a stored value is not what was encrypted; no value is shown in its place."""

    exit_code = 2


def offer(spark: SparkSession, settings: Settings, name: str) -> Key:
    """Give a session the functions with all versions of a key; return the current one, generated if there is none."""
    from pyspark.errors import PySparkException

    key = current(settings, name)
    source = spark.read.format("keyed-encryption").option("encrypt", ENCRYPT).option("decrypt", DECRYPT)
    pointer = secrets.pointer(settings, name)
    files = [{"name": name, "version": each, "file": str(pointer.file(each))} for each in pointer.versions()]
    try:
        # The engine registers the functions while Spark looks for the schema.
        source.option("keys", json.dumps(files)).load().schema  # noqa: B018
    except PySparkException as error:
        if (refused := _refused(name, str(error))) is None:
            raise
        raise refused from error
    return key


def _refused(name: str, text: str) -> ConfigurationError | None:
    if _UNKNOWN_SOURCE in text:
        return ConfigurationError(
            what="this Spark server cannot encrypt, so nothing is written in the clear either",
            where="the Spark server, without the engine's jar",
            next_step="load the engine's jar",
        )
    if _NO_KEY in text:
        return ConfigurationError(
            what=f"the Spark server cannot read the key {name}",
            where="the Spark server",
            next_step="use a Spark server on a machine that reads the deployment's secrets",
        )
    return None


def explained(text: str, settings: Settings) -> CannotDecrypt | None:
    """Tell from the error of a query why it could not decrypt; None: it failed for another reason."""
    if _NO_KEY in text:
        return CannotDecrypt(
            what=f"the deployment's secrets no longer have {_after(_NO_KEY, text)}",
            where=str(secrets.pointer(settings, _after(_NO_KEY, text).rpartition(" ")[2]).file()),
            next_step=Remedy(
                "bring that version back; if it is gone, publish the dataset again, by the current one: ", _AGAIN
            ),
        )
    if _NOT_AUTHENTIC in text:
        return CannotDecrypt(
            what=f"a stored value is not what was encrypted: {_after(_NOT_AUTHENTIC, text)}",
            where="a file of the table, or the key",
            next_step=Remedy("bring the right key back, or publish the dataset again: ", _AGAIN),
        )
    return None


def _after(condition: str, text: str) -> str:
    """Return the engine's own words behind a condition."""
    return text.partition(f"[{condition}] ")[2].partition("\n")[0].strip().partition(" SQLSTATE")[0].rstrip(".")
