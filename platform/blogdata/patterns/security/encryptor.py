"""Encryptor: values of persons are stored encrypted; whoever has the files and not the key has nothing.

Problem: who gets hold of the files of a table (a backup, a copied folder, an object store with a wrong policy) reads
all of it. Roles and views protect only who asks through them.

How it works: a contract names the columns that are encrypted, the key, and the column that a value belongs to a row by
(:class:`blogdata.publish.schema.Encrypted`). :func:`encrypted` replaces each text by its ciphertext before it is
written, :func:`decrypted` gives it back to who may see it. Both are functions of the engine (`Encryption`),
AES-256-GCM: they take the *name* and the version of a key, so no plan has its value; the Spark server reads it where
the deployment's secrets are (Secrets Pointer), when a session is given the functions. Dataset, column and row are
associated data: a ciphertext that was changed, or moved to another row, is an error, and never a wrong value.

Of the same text in the same row the ciphertext is always the same, so a table that is derived anew equals the one that
was continued. The nonce is a keyed hash, of 96 bits, of the text and of what it belongs to (as in RFC 5297, SIV): that
two texts share one is as improbable as with random nonces. A ciphertext shows how long its text is, and that a row has
the same value as before; that it is null is seen.

A key has versions, and each ciphertext says which one it has. Rotation adds a version and publishes the table again, by
that one; versions of the table from before need the old one, until they are vacuumed. Removing a version of the key
makes everything that was encrypted by it unreadable at once, wherever a copy is (crypto-shredding): older versions of
the table, backups, and files that an erasure cannot reach. That is per version of the key, for all persons: a key for
each person would itself be a row about each person, in a place that is copied and backed up as well.

The trap: the key beside the data. Secrets in the deployment's home protect a lake that lies elsewhere, or is copied
without them; a backup of the whole home has both. Another trap: a key that is lost. What is derived from it is gone,
unless it can be computed again: here from bronze, by another version.

When not to use it: for columns that are joined, filtered or counted by value: that takes a token (Pseudo-Anonymizer).
And not against who runs the deployment and reads its secrets. Bronze and the landing zone keep lines as received.

Source: Data Engineering Design Patterns, ch. 7; NIST SP 800-38D (GCM).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blogdata.publish.contract import Contract

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ENCRYPT, DECRYPT = "blogdata_encrypted", "blogdata_decrypted"
"""Functions of a session that has the keys; a statement of a person may call neither."""


def encrypted(rows: DataFrame, contract: Contract, version: int) -> DataFrame:
    from pyspark.sql import functions as F

    declared = contract.encrypted
    if declared is None:
        return rows
    key = F.lit(declared.key), F.lit(version)
    return rows.withColumns(
        {name: F.call_function(ENCRYPT, F.col(name), *key, _belongs_to(contract, name)) for name in declared.columns}
    )


def decrypted(rows: DataFrame, contract: Contract) -> DataFrame:
    """Decrypt what :func:`encrypted` has encrypted, by whichever version of the key it was."""
    from pyspark.sql import functions as F

    declared = contract.encrypted
    if declared is None:
        return rows
    return rows.withColumns(
        {
            name: F.call_function(DECRYPT, F.col(name), F.lit(declared.key), _belongs_to(contract, name))
            for name in declared.columns
        }
    )


def _belongs_to(contract: Contract, column: str) -> Column:
    from pyspark.sql import functions as F

    assert contract.encrypted is not None
    return F.concat_ws("\n", F.lit(f"{contract.dataset}.{column}"), contract.encrypted.row)
