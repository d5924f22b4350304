"""A deployment with senders of events, and calls as a sender makes them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blogdata.services import config
from blogdata.services.config import Settings

TOKEN = "t0ken-of-the-shop-that-nobody-else-has"
SENDERS = """
[events]
port = {port}

[[events.senders]]
name = "shop"
secret = "shop"

[[events.senders]]
name = "partner"
files = true
datasets = ["bronze.users"]
"""


def deployed(home: Path, *, port: int = 3070) -> Settings:
    """Make a deployment in which `shop` makes calls and `partner` writes files."""
    (home / "secrets").mkdir(parents=True)
    write_token(home, TOKEN)
    (home / "blogdata.toml").write_text(SENDERS.format(port=port), encoding="utf-8")
    return config.load(overrides={"BLOGDATA_HOME": str(home)})


def write_token(home: Path, token: str, mode: int = 0o600) -> None:
    """Replace the token of `shop`."""
    file = home / "secrets" / "shop"
    file.write_text(f"{token}\n", encoding="utf-8")
    file.chmod(mode)


def event(**changes: Any) -> dict[str, Any]:
    """Build an event of now; a change to None omits the field."""
    now = datetime.now(timezone.utc).isoformat()
    fields = {"id": "release-42", "source": "shop", "time": now, "datasets": ["bronze.devices"], **changes}
    return {name: value for name, value in fields.items() if value is not None}


def post(url: str, body: object, *, token: str | None = TOKEN, **headers: str) -> tuple[int, dict[str, Any]]:
    """Call as a sender; return the status and content of the answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {**headers, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    request = urllib.request.Request(url, data=raw, headers=sent)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)
