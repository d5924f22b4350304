"""One small harmful change to the mechanics, and constructors for it."""

from __future__ import annotations

from dataclasses import dataclass

ENGINE = "platform/blogdata/engine/java/io/blogdata/engine"
ERRORS = "platform/blogdata/patterns/error_management"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One harmful change.

    Args:
        name: Its effect, for people.
        file: The file it changes, relative to the project's root.
        old: The text it replaces; occurs once.
        new: The replacement.
        noticed_by: The tests that must fail, as pytest arguments.
    """

    name: str
    file: str
    old: str
    new: str
    noticed_by: tuple[str, ...]


def in_engine(name: str, file: str, old: str, new: str, *noticed_by: str) -> Mutant:
    return Mutant(name=name, file=f"{ENGINE}/{file}", old=old, new=new, noticed_by=noticed_by)


def in_error_management(name: str, module: str, old: str, new: str) -> Mutant:
    noticed_by = (f"tests/error_management/test_{module}.py",)
    return Mutant(name=name, file=f"{ERRORS}/{module}.py", old=old, new=new, noticed_by=noticed_by)


def in_code(name: str, file: str, old: str, new: str, *noticed_by: str) -> Mutant:
    return Mutant(name=name, file=file, old=old, new=new, noticed_by=noticed_by)
