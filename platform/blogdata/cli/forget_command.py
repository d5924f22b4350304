"""`blogdata forget`: persons leave the landing zone and all tables, and do not come back."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from blogdata.cli.output import TextGrid, console, existing
from blogdata.errors import ConfigurationError
from blogdata.landing.landed_persons import Identifiers
from blogdata.operate.config import Settings
from blogdata.privacy.clearing import look as search_everything

if TYPE_CHECKING:
    from blogdata.privacy.erasure_plan import ErasurePlan


def forget(
    users: Annotated[list[str] | None, typer.Argument(metavar="USER...", help="Ids of users")] = None,
    login: Annotated[list[str] | None, typer.Option(help="A login; who had it is found")] = None,
    email: Annotated[list[str] | None, typer.Option(help="An e-mail address; who had it is found")] = None,
    visit: Annotated[list[str] | None, typer.Option(help="Id of a visit; whose it was is found")] = None,
    address: Annotated[
        list[str] | None, typer.Option(help="A network address: all its visits and requests, whoever they were of")
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
) -> None:
    """Forget persons: show where they are, ask, and erase them for good.

    Without a person it goes on with an erasure that was interrupted.
    """
    from blogdata.privacy.forget import alone

    settings = existing()
    given = Identifiers(
        user_ids=frozenset(users or ()),
        logins=frozenset(login or ()),
        emails=frozenset(email or ()),
        visit_ids=frozenset(visit or ()),
        addresses=frozenset(address or ()),
    )
    if search:
        if _are_found(settings, given):
            raise typer.Exit(1)
        return
    with alone(settings):
        if not _begun(settings, given, shared_stays=shared_stays, leave=leave or [], yes=yes):
            return
        from blogdata.cli.pipeline import Pipeline
        from blogdata.privacy.forget import go_on

        left = go_on(settings, console.print, Pipeline(settings, command="blogdata forget"))["files_with_values"]
    console.print("forgotten: they do not come back")
    if left:
        console.print(f"files that still have a value of theirs: {', '.join(left)}; remove what should not stay")


def _are_found(settings: Settings, given: Identifiers) -> bool:
    if not given.values():
        raise ConfigurationError(
            what="no value to search for is given",
            where="blogdata forget --search",
            next_step="name values: a user id, --login, --email, --visit or --address",
        )
    searched = search_everything(settings, given.values())
    table = TextGrid()
    table.add_column("file")
    table.add_column("found in")
    for path, how in searched.traces.items():
        table.add_row(path, how)
    if searched.traces:
        console.print(table)
    unsearched = Counter(("/".join(path.split("/")[:2]), why) for path, why in searched.unsearched.items())
    for (place, why), files in unsearched.items():
        console.print(f"not searched: {place} ({files:,} files): {why}")
    console.print(f"{searched.files:,} files were searched; {len(searched.traces):,} of them have a value")
    return bool(searched.traces)


def _begun(settings: Settings, given: Identifiers, *, shared_stays: bool, leave: list[str], yes: bool) -> bool:
    """Return whether an erasure is under way: an interrupted one, or that of these persons, if somebody agrees."""
    from blogdata.privacy.forget import begin, is_under_way, look

    if is_under_way(settings, given):
        return True
    looked = look(settings, given, shared_stays=shared_stays)
    _show(looked)
    looked.require_reached(leave)
    if not yes and not sys.stdin.isatty():
        console.print("nothing was erased; do it: --yes")
        return False
    if wanted := yes or typer.confirm("forget these persons for good?"):
        begin(settings, looked)
    return wanted


def _show(looked: ErasurePlan) -> None:
    console.print(f"known by: {looked.known_by}")
    if looked.match.shared:
        console.print(f"left out, since others have had them, too: {', '.join(sorted(looked.match.shared))}")
    if looked.match.unknown:
        console.print(f"in no landed line, but kept away from now on: {', '.join(sorted(looked.match.unknown))}")
    table = TextGrid()
    for name in ("place", "partitions", "files", "rows"):
        table.add_column(name, justify="left" if name == "place" else "right", no_wrap=True)
    for place, *figures in looked.rows():
        table.add_row(place, *["" if figure is None else f"{figure:,.0f}" for figure in figures])
    console.print(table)
