"""Commands whose modules are imported only when called; until then they are a name and one line of help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class Deferred:
    """A command, and its help in the list of commands.

    Args:
        place: Where it is, as `module:name`: a function, or the Typer application of a group of commands.
    """

    place: str
    help: str

    def load(self, name: str) -> Any:
        """Import the command."""
        found = resolve_name(self.place)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(found)
        return typer.main.get_command(alone)


def group_of(commands: Mapping[str, Deferred]) -> type[TyperGroup]:
    """Build the class of a group whose commands are imported when they are called.

    Returns:
        What `typer.Typer` takes as `cls`.
    """

    class DeferredGroup(TyperGroup):
        def __init__(self, **arguments: Any) -> None:
            listed = {name: TyperCommand(name, help=command.help) for name, command in commands.items()}
            super().__init__(**{**arguments, "commands": listed})

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            return name, commands[name].load(name) if name is not None and name in commands else command, rest

    return DeferredGroup
