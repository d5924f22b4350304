"""Tables of a database as sources of a deployment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blogdata.operate.config import TableSettings
from lineage.deployment import Deployment

DEVICES = "CREATE TABLE devices (type text, full_name varchar(40), version text)"
LEGACY_VISITS = """
    CREATE TABLE legacy_visits (
        visit_id text, event_time timestamptz, user_id bigint, keep_private boolean, page varchar(100), referral text,
        ad_id text, ip text, login text, connected_since timestamptz, browser text, browser_version text,
        network_type text, device_type text, device_version numeric, ingestion_time timestamptz,
        is_deleted boolean DEFAULT false
    )
"""
USERS = """
    CREATE TABLE users (
        id text, login text, email text, registered_datetime timestamptz, first_connection_datetime timestamptz,
        last_connection_datetime timestamptz, updated_at timestamptz, is_deleted boolean DEFAULT false
    )
"""


def reading(deployment: Deployment, database: str, **tables: Any) -> Deployment:
    """Name tables as sources of a deployment; the password is a secret by its name."""
    password, place = database.removeprefix("postgresql://blogdata:").split("@")
    found = TableSettings(url=f"postgresql://blogdata@{place}", secret="tables", **tables)
    secret = deployment.settings.home / "secrets" / "tables"
    secret.touch(mode=0o600)
    secret.write_text(password, encoding="utf-8")
    file = deployment.settings.home / "blogdata.toml"
    before = file.read_text(encoding="utf-8").partition("\n[tables]")[0]
    lines = "".join(f'{name} = "{getattr(found, name)}"\n' for name in ("url", "secret", *tables))
    file.write_text(f"{before}\n[tables]\n{lines}", encoding="utf-8")
    return Deployment(settings=replace(deployment.settings, tables=found))
