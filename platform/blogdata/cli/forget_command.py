"""`blogdata forget`: persons leave the landing zone and all tables, and do not come back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli.output import TextGrid, agreed, console, existing
from blogdata.erasure import persons as found_persons
from blogdata.erasure.journal import Journal
from blogdata.services.config import Settings
from blogdata.suppression.identifiers import Identifiers

if TYPE_CHECKING:
    from blogdata.operations.forget import Looked


def forget(
    users: Annotated[list[str] | None, typer.Argument(metavar="USER...", help="Ids of users")] = None,
    login: Annotated[list[str] | None, typer.Option(help="A login; who had it is found")] = None,
    email: Annotated[list[str] | None, typer.Option(help="An e-mail address; who had it is found")] = None,
    visit: Annotated[list[str] | None, typer.Option(help="Id of a visit; whose it was is found")] = None,
    address: Annotated[
        list[str] | None, typer.Option(help="A network address: all its visits and requests, whoever they were of")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Persons, one a line: a user id, or login:…, email:…, visit:…, address:…")
    ] = None,
    shared_stays: Annotated[
        bool, typer.Option("--shared-stays", help="Leave out values that other users have had, too")
    ] = False,
    leave: Annotated[
        list[str] | None, typer.Option(metavar="PLACE", help="Go on although this place is not reached")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Forget them without asking")] = False,
    search: Annotated[
        bool, typer.Option("--search", help="Only search all files for the given values; exit code 1 if any is found")
    ] = False,
    certificates: Annotated[
        bool, typer.Option("--certificates", help="Only list the certificates of past erasures")
    ] = False,
) -> None:
    """Forget persons: show where they are, ask, and erase them for good.

    Without a person it goes on with an erasure that was interrupted.
    """
    from blogdata.cli import forget_shown
    from blogdata.operations.forget import alone, remaining, text_of

    settings = existing()
    given = Identifiers(
        user_ids=frozenset(users or ()),
        logins=frozenset(login or ()),
        emails=frozenset(email or ()),
        visit_ids=frozenset(visit or ()),
        addresses=frozenset(address or ()),
    )
    if file is not None:
        given |= found_persons.given_in(text_of(file), str(file))
    if search or certificates:
        if certificates:
            forget_shown.certificates(settings)
        elif forget_shown.search(settings, given):
            raise typer.Exit(1)
        return
    with alone(settings):
        if not _begun(settings, given, shared_stays=shared_stays, leave=leave or [], yes=yes):
            return
        from blogdata.cli.pipeline import Pipeline
        from blogdata.operations.forget_steps import go_on

        go_on(settings, Journal.of(settings), console.print, Pipeline(settings, command="blogdata forget"))
    console.print("forgotten: they do not come back; what was done where: blogdata forget --certificates")
    if left := remaining(settings):
        console.print(
            f"files that still have a value of theirs: {', '.join(left)}; look, and remove what should not stay: "
            "blogdata forget --search, with the values"
        )


def _begun(settings: Settings, given: Identifiers, *, shared_stays: bool, leave: list[str], yes: bool) -> bool:
    """Return whether an erasure is under way: an interrupted one, or that of these persons, if somebody agrees."""
    from blogdata.operations.forget import is_under_way, look

    if is_under_way(settings, given):
        return True
    looked = look(settings, given, shared_stays=shared_stays)
    _show(looked)
    looked.require_reached(leave)
    wanted = yes or agreed("forget these persons for good?", otherwise="nothing was erased; do it: --yes")
    if wanted:
        looked.begin(settings)
    return wanted


def _show(looked: Looked) -> None:
    console.print(f"known by: {looked.known_by}")
    if looked.found.shared:
        console.print(f"left out, since others have had them, too: {', '.join(sorted(looked.found.shared))}")
    if looked.found.unknown:
        console.print(f"in no landed line, but kept away from now on: {', '.join(sorted(looked.found.unknown))}")
    table, rows = TextGrid(), list(looked.rows())
    for name in ("place", "partitions", "files", "rows", "seconds"):
        table.add_column(name, justify="left" if name == "place" else "right", no_wrap=True)
    for place, *figures in rows:
        table.add_row(place, *["" if each is None else f"{each:,.0f}" for each in figures])
    console.print(table)
    console.print(f"computing it again takes about {sum(row[4] or 0 for row in rows):,.0f} s, by what it took before")
