"""Commands whose modules are imported when they are called; until then a name and one line of help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, kw_only=True)
class Deferred:
    """Where a command is, and what the list of commands says of it.

    Args:
        module: The module to import.
        attribute: The function in it, or the Typer application of a group of commands.
        help: The first paragraph of the command's own help.
    """

    module: str
    attribute: str
    help: str

    def load(self, name: str) -> Any:
        """Import the command.

        Args:
            name: What it is called on the command line.
        """
        found = getattr(import_module(self.module), self.attribute)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name)(found)
        return typer.main.get_command(alone)


def group_of(commands: Mapping[str, Deferred]) -> type[TyperGroup]:
    """Build the class of a group whose commands are imported when they are called.

    Args:
        commands: By name, in the order in which they are listed.

    Returns:
        What `typer.Typer` takes as `cls`.
    """

    class DeferredGroup(TyperGroup):
        def __init__(self, **arguments: Any) -> None:
            listed = {name: TyperCommand(name, help=command.help) for name, command in commands.items()}
            super().__init__(**{**arguments, "commands": listed})

        def resolve_command(self, ctx: typer.Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
            name, command, rest = super().resolve_command(ctx, args)
            return name, commands[name].load(name) if name in commands else command, rest

    return DeferredGroup
