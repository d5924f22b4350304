"""Reads the settings of the secrets: the section `[secrets]`, which says where their values are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from blogdata.errors import ConfigurationError
from blogdata.secrets import secret_files
from blogdata.secrets.secret import Secret
from blogdata.services import setting_values
from blogdata.services.setting_values import Values

ProviderKind = Literal["files", "environment", "openbao"]
KEYS = {"provider", "address", "mount", "path", "token_file", "role", "role_secret_file"}
_PATH = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")


@dataclass(frozen=True, kw_only=True)
class SecretSettings:
    """Where the values of secrets are.

    Args:
        provider: `files` of the home, variables of the `environment`, or a server of `openbao` (or Vault).
        token: Its token, from the environment; None: it is in a file, or a role logs in.
        role: Id of the role that logs in; None: a token is used.
    """

    provider: ProviderKind = "files"
    address: str = ""
    mount: str = "secret"
    path: str = "blogdata"
    token: Secret | None = None
    token_file: Path | None = None
    role: str | None = None
    role_secret_file: Path | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False, hash=False)


def parse(values: Values, environ: Mapping[str, str], *, home: Path) -> SecretSettings:
    """Read the settings.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    kind = cast(ProviderKind, setting_values.choice(values, "provider", "files", get_args(ProviderKind)))
    token = setting_values.text(values, "token")
    found = SecretSettings(
        provider=kind,
        address=(setting_values.address(values, "address", of="a server of secrets") or "").rstrip("/"),
        mount=_path(values, "mount", "secret"),
        path=_path(values, "path", "blogdata"),
        token=Secret(token) if token else None,
        token_file=_file(values, "token_file", home),
        role=setting_values.text(values, "role") or None,
        role_secret_file=_file(values, "role_secret_file", home),
        variables={name: value for name, value in environ.items() if name.startswith(secret_files.PREFIX)},
    )
    if kind == "openbao":
        _check_server(found, home)
    return found


def _path(values: Values, key: str, default: str) -> str:
    path = setting_values.text(values, key) or default
    if not _PATH.fullmatch(path):
        raise ConfigurationError(
            what=f"the {key} of the secrets is names of letters, digits, dots, hyphens and underscores between slashes",
            where=values[key][1],
            next_step=f'write it like {key} = "{default}"',
        )
    return path


def _file(values: Values, key: str, home: Path) -> Path | None:
    return setting_values.folder(values, key, home, home) if key in values else None


def _check_server(found: SecretSettings, home: Path) -> None:
    where = f"{home / 'blogdata.toml'}, [secrets]"
    if not found.address:
        raise ConfigurationError(
            what="the secrets are on a server, and its address is not set",
            where=where,
            next_step='write address = "https://bao.example.org:8200", or set BLOGDATA_OPENBAO',
        )
    if urlsplit(found.address).scheme != "https" and not setting_values.is_local(found.address):
        raise ConfigurationError(
            what="a token is not sent without TLS", where=where, next_step="use an address that begins with https://"
        )
    if bool(found.role) != bool(found.role_secret_file):
        raise ConfigurationError(
            what="a role logs in with its id and the file of its secret id",
            where=where,
            next_step='write role = "…" and role_secret_file = "…"',
        )
    if not (found.token or found.token_file or found.role):
        raise ConfigurationError(
            what="the server of the secrets asks for a token, and none is set",
            where=where,
            next_step=f"write token_file, or role and role_secret_file, or set {secret_files.SERVER_TOKEN}",
        )
