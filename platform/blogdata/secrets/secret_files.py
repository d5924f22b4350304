"""Secrets in files of the deployment that only their owner can read; the default of the Secrets Pointer.

Secrets in variables of the environment, for the Secrets Pointer.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.secrets.secrets_pointer import Secret

PREFIX, SERVER_TOKEN = "BLOGDATA_SECRET_", "BAO_TOKEN"
"""Variables with secrets: those that begin so, and the token of an OpenBao server."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Variables such as `BLOGDATA_SECRET_POSTGRES_ANALYST`; `…__2` is the second version, and so on."""

    variables: Mapping[str, str]

    def read(self, name: str, version: int | None = None) -> Secret | None:
        value = self.variables.get(self._variable(name, version))
        return None if value is None else Secret(value.strip())

    def versions(self, name: str) -> tuple[int, ...]:
        first = _variable(name)
        later = (re.fullmatch(rf"{first}__([1-9][0-9]*)", variable) for variable in self.variables)
        found = [1] if first in self.variables else []
        return tuple(sorted([*found, *(int(match[1]) for match in later if match)]))

    def add(self, name: str, secret: Secret, *, after: int) -> bool:
        """Refuse: a process cannot set the environment of the others."""
        variable = self._variable(name, after + 1)
        raise ConfigurationError(
            what=f"{f'version {after + 1} of ' if after else ''}the secret {name} does not exist, and variables of the"
            " environment are not made by the platform",
            where=f"variable {variable}",
            next_step=f"set it for every process, to a random one: openssl rand -hex 32 ({variable})",
        )

    def place(self, name: str) -> str:
        return f"variable {self._variable(name)}"

    def remedy(self, name: str) -> str:
        return f"set {self._variable(name)} for every process of the deployment"

    def _variable(self, name: str, version: int | None = None) -> str:
        if version is None:
            version = max(self.versions(name), default=1)
        return _variable(name) + ("" if version == 1 else f"__{version}")


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that another program may inherit."""
    return {name: value for name, value in variables.items() if not name.startswith(PREFIX) and name != SERVER_TOKEN}


def _variable(name: str) -> str:
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())


_OTHERS = 0o077


@dataclass(frozen=True, kw_only=True)
class SecretFiles:
    """A folder with a file for each version of a secret: `name` for the first, `name@2` and so on for the others."""

    folder: Path

    def read(self, name: str, version: int | None = None) -> Secret | None:
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
        first = [1] if (self.folder / name).is_file() else []
        later = (re.fullmatch(r".*@([1-9][0-9]*)", file.name) for file in self.folder.glob(f"{name}@*"))
        return tuple(sorted([*first, *(int(found[1]) for found in later if found)]))

    def add(self, name: str, secret: Secret, *, after: int) -> bool:
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
        return str(self.file(name))

    def remedy(self, name: str) -> str:
        return f"write it into that file, readable only by you: (umask 077; cat > {self.file(name)})"
