"""Secrets in files of the deployment that only their owner can read; the default of the Secrets Pointer."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.secrets.secret import Secret

_OTHERS = 0o077


@dataclass(frozen=True, kw_only=True)
class SecretFiles:
    """A folder with a file for each version of a secret: `name` for the first, `name@2` and so on for the others."""

    folder: Path

    def read(self, name: str, version: int | None = None) -> Secret | None:
        """Read a secret; see :class:`blogdata.secrets.secrets_pointer.Provider`.

        Raises:
            ConfigurationError: Its file is readable by others, or is no text.
        """
        file = self.file(name, version)
        if not file.is_file():
            return None
        if file.stat().st_mode & _OTHERS:
            raise ConfigurationError(
                what=f"the secret {name} is readable by others", where=str(file), next_step=f"run: chmod 600 {file}"
            )
        try:
            return Secret(file.read_text(encoding="utf-8").strip())
        except UnicodeDecodeError:
            # Without its cause, which has the bytes.
            raise ConfigurationError(
                what=f"the secret {name} is no text in UTF-8", where=str(file), next_step="write it there as one line"
            ) from None

    def file(self, name: str, version: int | None = None) -> Path:
        """Return the file of a version; None: of the current one."""
        if version is None:
            version = max(self.versions(name), default=1)
        return self.folder / (name if version == 1 else f"{name}@{version}")

    def versions(self, name: str) -> tuple[int, ...]:
        """List the versions of a secret."""
        first = [1] if (self.folder / name).is_file() else []
        later = (re.fullmatch(r".*@([1-9][0-9]*)", file.name) for file in self.folder.glob(f"{name}@*"))
        return tuple(sorted([*first, *(int(found[1]) for found in later if found)]))

    def add(self, name: str, secret: Secret, *, after: int) -> bool:
        """Store a version, for its owner only."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(dir=self.folder, prefix=f".{name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(secret.reveal())
                opened.flush()
                os.fsync(opened.fileno())
            # Unlike a renamed file, a link replaces nothing: of two processes, the first one stores its value.
            os.link(made, self.file(name, after + 1))
        except FileExistsError:
            return False
        finally:
            Path(made).unlink()
        return True

    def place(self, name: str) -> str:
        """Return the current version's file."""
        return str(self.file(name))

    def remedy(self, name: str) -> str:
        """Return the command that stores a secret."""
        return f"write it into that file, readable only by you: (umask 077; cat > {self.file(name)})"
