"""The card of a pattern: the docstring of its module, split into its parts and written as Markdown."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCE, WORKS = "Source", "How it works"
PARTS = ("Problem", WORKS, "The trap", "When not to use it", SOURCE)
"""The parts of a card, in their order; each begins a line."""
_TITLE = re.compile(r"(?P<name>[A-Z][A-Za-z-]*(?: (?:for|[A-Z][A-Za-z-]*))*): (?P<sentence>.+)")
_PART = re.compile(rf"^({'|'.join(PARTS)}): ", re.MULTILINE)
_BOOK = re.compile(r'"?(Data Engineering Design Patterns)"?, ch\. (\d+)')
_VERB = re.compile(r":(?:func|class|data):`([\w.]+)`")
_ROLE = re.compile(r":[a-z]+:`[.~]?([^`]+)`")
_PARAGRAPHS = re.compile(r"\n\s*\n")


@dataclass(frozen=True, kw_only=True)
class Card:
    """The card of one pattern."""

    name: str
    chapter: int
    sentence: str
    parts: Mapping[str, str]
    verbs: tuple[str, ...] = ()


def read(file: Path) -> Card | None:
    """Read the card of a module.

    Returns:
        The card; None if the docstring is no card, or the card of a pattern with another name than the module's.
    """
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    opening, *sections = _PART.split(text)
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    parts = {title: _markdown(part) for title, part in texts.items()}
    title, source = _TITLE.match(opening), _BOOK.match(parts.get(SOURCE, ""))
    if title is None or source is None or module_name(title["name"]) != file.stem:
        return None
    parts[SOURCE] = _BOOK.sub(r"*\1*, chapter \2", parts[SOURCE])
    return Card(
        name=title["name"],
        chapter=int(source[2]),
        sentence=title["sentence"].rstrip("."),
        parts=parts,
        verbs=tuple(_VERB.findall(texts[WORKS])),
    )


def module_name(pattern: str) -> str:
    """Return the module name that belongs to a pattern's name."""
    return pattern.lower().replace("-", "_").replace(" ", "_")


def _markdown(text: str) -> str:
    paragraphs = (" ".join(paragraph.split()) for paragraph in _PARAGRAPHS.split(text.strip()))
    return "\n\n".join(_ROLE.sub(r"`\1`", paragraph).replace("``", "`") for paragraph in paragraphs)
