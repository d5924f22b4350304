"""Requests that carry a secret: a redirect is refused, because urllib would send the secret to the other host."""

from __future__ import annotations

import ssl
import urllib.request
from pathlib import Path
from typing import Any


def opener(ca_file: Path | None = None) -> urllib.request.OpenerDirector:
    """Return what opens requests and follows no redirect: such an answer is raised as an `HTTPError`.

    Args:
        ca_file: Trusted certificates in PEM; None: the machine's.
    """
    context = ssl.create_default_context(cafile=ca_file)
    return urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Refuse; urllib then raises the answer as an error."""
