"""The secrets of a deployment, by their names; where the values are is a setting, and its own ones are generated once.

Pattern: Secrets Pointer (:mod:`blogdata.secrets.secrets_pointer`).
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

from blogdata.errors import ConfigurationError
from blogdata.secrets.secret_files import Environment, SecretFiles
from blogdata.secrets.secrets_pointer import Pointer, Provider, Secret, fetch
from blogdata.services.config import SecretSettings, Settings

SHORTEST = 32
_MEMORY = Path("/dev/shm")
_SHOWN = "blogdata-shown-"
"""Beginning of the names of folders in memory that have a secret."""


def pointer(settings: Settings, name: str) -> Pointer:
    return Pointer(name=name, provider=provider(settings))


def read(settings: Settings, name: str, version: int | None = None) -> Secret:
    """Read a secret of the deployment's own in one of its versions, or the current one.

    It has at least 32 characters; without a current one a random one is generated.
    """
    own = pointer(settings, name)
    if version is None and own.provider.read(name) is None:
        # What is derived from a secret is permanent: of two processes the first generates it, the second reads it.
        own.provider.add(name, random(), after=0)
    secret = fetch(own, version)
    if len(secret.reveal()) < SHORTEST:
        raise ConfigurationError(
            what=f"the secret {name} is shorter than {SHORTEST} characters",
            where=own.place,
            next_step="put a longer one there, or remove it to have one made (ids derived from it change)",
        )
    return secret


def random() -> Secret:
    return Secret(secrets.token_hex(SHORTEST))


def given(settings: Settings, name: str) -> Secret:
    """Read a secret of somebody else, such as a password, that a person has stored."""
    return fetch(pointer(settings, name))


def in_files(settings: Settings, name: str) -> Pointer:
    """Point other programs of this machine, such as Spark's workers, to all versions of a secret in files.

    They are the secret's own files; with another provider, files in memory that are removed when this process ends.
    Those of processes that were killed before are removed first.
    """
    read(settings, name)
    own = provider(settings)
    if isinstance(own, SecretFiles):
        return pointer(settings, name)
    shown = SecretFiles(folder=_shown(settings))
    for version in own.versions(name):
        shown.add(name, read(settings, name, version), after=version - 1)
    return Pointer(name=name, provider=shown)


@lru_cache(maxsize=8)
def _shown(settings: Settings) -> Path:
    """Make the folder of the secrets that this process shows."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(_folder_in(_MEMORY if _MEMORY.is_dir() else settings.home))


@contextmanager
def _folder_in(parent: Path) -> Iterator[Path]:
    """Make a folder that only its owner can enter, and remove those that killed processes have left."""
    for left in parent.glob(f"{_SHOWN}*"):
        with suppress(FileNotFoundError, BlockingIOError):
            if left.lstat().st_uid == os.getuid() and not left.is_symlink():
                with _held(left):
                    shutil.rmtree(left)
    made = Path(mkdtemp(dir=parent, prefix=f".{_SHOWN}"))
    with _held(made):
        # It has its name once it is held: nobody takes it for one that was left.
        folder = made.rename(made.with_name(made.name.removeprefix(".")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a folder for as long as this process lives, at most; raises BlockingIOError while another one does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def provider(settings: Settings) -> Provider:
    chosen = settings.secrets
    match chosen.provider:
        case "files":
            return files(settings)
        case "environment":
            return Environment(variables=chosen.variables)
        case "openbao":
            return _server(chosen, settings.ca_file)


def files(settings: Settings) -> SecretFiles:
    return SecretFiles(folder=settings.home / "secrets")


@lru_cache(maxsize=8)
def _server(chosen: SecretSettings, ca_file: Path | None) -> Provider:
    """Build the client of a server once, so that its token is read once."""
    # Other deployments do not load a client of HTTP.
    from blogdata.secrets.openbao import OpenBao

    def token() -> Secret:
        if chosen.token is not None:
            return chosen.token
        file = chosen.token_file
        assert file is not None
        return fetch(Pointer(name=file.name, provider=SecretFiles(folder=file.parent)))

    address = (chosen.address or "").rstrip("/")
    return OpenBao(address=address, mount=chosen.mount, path=chosen.path, login=token, ca_file=ca_file)
