"""Secrets on an OpenBao or Vault server, for the Secrets Pointer: the key-value engine, version 2, over HTTP.

A secret is the field `value` of the entry `<path>/<name>` below a mount. The server is asked with a token, which is in
a file or comes from a login with a role (AppRole). It is read, or the login is made, again when the server refuses it.

Source: HTTP API of OpenBao, `secret/kv-v2` and `auth/approle`.

Requests that carry a secret: a redirect is refused, because urllib would send the secret to the other host.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from blogdata.errors import ConfigurationError, TransientError
from blogdata.secrets.secret import Secret


def opener(ca_file: Path | None = None) -> urllib.request.OpenerDirector:
    """Return what opens requests and follows no redirect; without a file it trusts the machine's certificates."""
    context = ssl.create_default_context(cafile=ca_file)
    return urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Refuse; urllib then raises the answer as an error."""


_SECONDS = 10.0
_TO_SECONDS = len("2026-01-05T10:00:00")
_FIELD = "value"
_RACED = b"check-and-set parameter did not match"
_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND, _BUSY = 400, 403, 404, 429


class _Forbidden(Exception):
    """The server refuses the token, or what is asked with it."""


@dataclass(frozen=True, kw_only=True)
class Role:
    id: str
    secret: Callable[[], Secret]


@dataclass(kw_only=True)
class OpenBao:
    """The secrets below a path of a server; the path may be empty."""

    address: str
    mount: str
    path: str
    login: Callable[[], Secret] | Role
    ca_file: Path | None = None
    _token: Secret | None = field(default=None, init=False)

    def read(self, name: str, version: int | None = None) -> Secret | None:
        found = self._ask(self._data(name) + ("" if version is None else f"?version={version}"))
        if found is None or found["data"] is None:
            return None
        value = found["data"].get(_FIELD)
        if not isinstance(value, str):
            raise self._refused(f"the secret {name} has no field {_FIELD}", f"write it as {_FIELD}=…", name)
        return Secret(value.strip())

    def versions(self, name: str) -> tuple[int, ...]:
        found = self._ask(f"{self.mount}/metadata/{self._entry(name)}")
        if found is None:
            return ()
        return tuple(sorted(int(number) for number, version in found["versions"].items() if not _is_gone(version)))

    def add(self, name: str, secret: Secret, *, after: int) -> bool:
        """Store a version; the server refuses it if another one was stored meanwhile."""
        content = {"options": {"cas": after}, "data": {_FIELD: secret.reveal()}}
        return self._ask(self._data(name), content) is not None

    def place(self, name: str) -> str:
        return f"{self.address}, {self.mount}/{self._entry(name)}"

    def remedy(self, name: str) -> str:
        return f"run: bao kv put -mount={self.mount} {self._entry(name)} {_FIELD}=-"

    def _entry(self, name: str) -> str:
        return "/".join(filter(None, (self.path, name)))

    def _data(self, name: str) -> str:
        return f"{self.mount}/data/{self._entry(name)}"

    def _ask(self, path: str, content: Mapping[str, Any] | None = None) -> Any:
        """Return the data of the server's answer, None if there are none; a token that it refuses is replaced once."""
        request = partial(self._send, path, content)
        try:
            return request(self._token or self._renewed())
        except _Forbidden:
            try:
                return request(self._renewed())
            except _Forbidden:
                pass
        raise self._refused(
            "the server of the secrets refuses the token, or what is asked with it",
            "see that the token is valid (bao token lookup), and that its policy allows this path",
            path,
        )

    def _renewed(self) -> Secret:
        if isinstance(self.login, Role):
            answer = self._send(
                "auth/approle/login", {"role_id": self.login.id, "secret_id": self.login.secret().reveal()}, None
            )
            self._token = Secret(answer["client_token"])
        else:
            self._token = self.login()
        return self._token

    def _send(self, path: str, content: Mapping[str, Any] | None, token: Secret | None) -> Any:
        request = urllib.request.Request(
            f"{self.address}/v1/{path}",
            data=None if content is None else json.dumps(content).encode(),
            headers={"Content-Type": "application/json", **({"X-Vault-Token": token.reveal()} if token else {})},
        )
        try:
            with opener(self.ca_file).open(request, timeout=_SECONDS) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raced = error.code == _BAD_REQUEST and _RACED in error.read()
            return None if raced else self._failed(error.code, path, content)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # Without its cause: a message may quote what was received.
            raise self._unavailable(f"does not answer ({type(error).__name__})") from None
        return found.get("data") or found.get("auth")

    def _failed(self, status: int, path: str, content: Mapping[str, Any] | None) -> None:
        if status == _FORBIDDEN:
            raise _Forbidden
        if status == _NOT_FOUND and content is None:
            return
        if status == _BUSY or status >= 500:
            raise self._unavailable(f"answers {status}")
        raise self._refused(f"the server of the secrets answers {status}", "check [secrets] of blogdata.toml", path)

    def _unavailable(self, what: str) -> TransientError:
        return TransientError(
            what=f"the server of the secrets {what}",
            where=self.address,
            next_step="see whether it runs and is unsealed: bao status",
        )

    def _refused(self, what: str, next_step: str, path: str) -> ConfigurationError:
        return ConfigurationError(what=what, where=f"{self.address}, {path}", next_step=next_step)


def _is_gone(version: Mapping[str, Any]) -> bool:
    # A time that is to come is when the server will delete it.
    now = datetime.now(timezone.utc).isoformat()
    return bool(version["destroyed"]) or "" < version["deletion_time"][:_TO_SECONDS] <= now[:_TO_SECONDS]
