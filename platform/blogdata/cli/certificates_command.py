"""`blogdata certificates`: the certificates of the deployment's own PostgreSQL and its logins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from blogdata.cli.output import TextGrid, console, say_json
from blogdata.errors import ConfigurationError
from blogdata.secrets.secretless_connector import SERVER, Certificates, lasting
from blogdata.services import config, postgres, postgres_certificates


def certificates(
    renew: Annotated[bool, typer.Option("--renew", help="Make new ones; the old ones hold for a week longer")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON")] = False,
) -> None:
    """List the certificates of the deployment's own PostgreSQL by login, with their files and ends."""
    settings = config.load()
    if settings.postgres.login != "certificate":
        raise ConfigurationError(
            what="the logins of this deployment's PostgreSQL have passwords",
            where=f"{settings.home / 'blogdata.toml'}, [postgres] login",
            next_step='write login = "certificate"',
        )
    if renew:
        postgres.renew_certificates(settings)
    rows = _rows(postgres_certificates.certificates(settings))
    if as_json:
        say_json({"certificates": rows})
        return
    table = TextGrid()
    for name in ("login", "accepted until", "certificate"):
        table.add_column(name)
    for row in rows:
        table.add_row(row["login"], row["until"], row["certificate"])
    console.print(table)


def _rows(known: Certificates) -> list[dict[str, str]]:
    return [
        {"login": login, "until": _day(until), "certificate": str(one.certificate(login)), "key": str(one.key(login))}
        for one, until in lasting(known)
        for login in (*known.logins, SERVER)
    ]


def _day(at: datetime) -> str:
    return at.isoformat(timespec="minutes")
