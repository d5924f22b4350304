"""Addresses of channels: what of them may be shown, and where a secret may travel."""

from __future__ import annotations

from urllib.parse import urlsplit

_LOCAL = {"localhost", "127.0.0.1", "::1"}


def shown(address: str) -> str:
    """Return the part of an address that holds no secret: scheme, host and port; of other services the scheme."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "an address"
    if parts.scheme not in ("http", "https", "smtp", "smtps"):
        return f"{parts.scheme}://…" if parts.scheme.isalnum() else "an address"
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}"


def is_local(address: str) -> bool:
    """Return whether an address is on this machine."""
    return urlsplit(address).hostname in _LOCAL
