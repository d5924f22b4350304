"""Keys that a client holds, from files of a test."""

from __future__ import annotations

from pathlib import Path

from blogdata.secrets.secret import Secret
from blogdata.secrets.secret_files import SecretFiles
from blogdata.secrets.secrets_pointer import Pointer, SecretInUse


def held(folder: Path, value: str) -> SecretInUse:
    """Store a key in a folder, and return it as a client holds it."""
    files = SecretFiles(folder=folder)
    files.add("key", Secret(value), after=0)
    return SecretInUse(Pointer(name="key", provider=files))
