"""Gives a Spark session the functions that encrypt and decrypt; the server reads the keys, by the names of secrets.

Pattern: Encryptor (:mod:`blogdata.patterns.security.encryptor`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.orchestration import keys
from blogdata.orchestration.keys import Key
from blogdata.patterns.security.encryptor import DECRYPT, ENCRYPT
from blogdata.services import secrets
from blogdata.services.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

    key = keys.current(settings, name)
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
