"""The pattern index: every pattern with its module, the datasets and sensors that use it, its callers and its tests.

Names and sources come from the modules' cards, callers from the calls in the code, tests from their names, docstrings
and imports. The users of a pattern carry its label: datasets in their contracts, assets, sensors and schedules in their
tags. A label must be true (:func:`unfounded`): the code that carries it calls the pattern's module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from blogdata.call_graph import Code, Name
from orchestration.names import slug
from quality.contracts import CONTRACTS, EVERY, STREAMED

CARD = re.compile(r"^(?P<name>[A-Z][A-Za-z-]*(?: [A-Z][A-Za-z-]*)*): (?P<sentence>.+?)$", re.MULTILINE)
SOURCE = re.compile(r'Source: "?Data Engineering Design Patterns"?, ch\. (\d+)')
COMMAND = re.compile(r"blogdata/(\w+)_commands?\.py$")
CHAPTERS = {
    2: "Ingestion",
    3: "Error management",
    4: "Idempotency",
    5: "Data value",
    6: "Data flow",
    7: "Security",
    8: "Storage",
    9: "Quality",
    10: "Observability",
}
MECHANICS = ("platform/patterns", "platform/orchestration")
CODE = ("platform", "assets", "blogdata", "quality", "resources", "sensors", "definitions.py")
BUILDING_BLOCK = "orchestration.dataset"
"""This module builds every dataset, so every dataset uses the patterns it calls."""
LINEAGE = frozenset({("quality.contracts", "GRAPH")})
"""Code that uses it handles every dataset that a run computes."""
STREAMS = ("quality.contracts", "STREAMED")
"""Code that uses it builds the datasets that a stream appends to."""
LIBRARY = "patterns."
EVERY_DATASET = "every dataset"
TAG = "pattern/"


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One pattern of the index.

    Args:
        name: As in the book.
        chapter: Chapter of the book.
        sentence: First sentence of its card.
        module: File of its module, relative to the project's root.
        datasets: Datasets whose contract names it and assets that carry its tag; if there are none and the building
            block of all datasets runs it, every dataset.
        starters: Sensors and schedules that carry its tag; if it has neither these nor datasets, the commands that
            call it.
        callers: Files of the modules that call it, relative to the root, without tests.
        works: Whether code outside the pattern library calls it, directly or through other modules.
        tests: Test modules named after it or with its name in their docstring; if there are none, those that import it.
    """

    name: str
    chapter: int
    sentence: str
    module: str
    datasets: tuple[str, ...]
    starters: tuple[str, ...]
    callers: tuple[str, ...]
    works: bool
    tests: tuple[str, ...]


def find(root: Path, definitions: dg.Definitions) -> list[Pattern]:
    """Build the index from the code.

    Args:
        root: The project's root.
        definitions: The deployed Dagster definitions.

    Returns:
        The patterns, by chapter and name.
    """
    code, tests = Code(root, CODE), Code(root, ("tests",))
    datasets, starters = _users(definitions)
    modules = _modules(code)
    works = _called(code, [name for name in code.definitions if not name[0].startswith(LIBRARY)])
    everywhere = _called(code, _blocks(code))
    found = []
    for module, (name, chapter, sentence) in modules.items():
        file, callers = code.files[module], sorted(set(_callers(code, module)))
        named = datasets.get(slug(name), [EVERY_DATASET] if module in everywhere else [])
        found.append(
            Pattern(
                name=name,
                chapter=chapter,
                sentence=sentence,
                module=file,
                datasets=tuple(named),
                starters=tuple(starters.get(slug(name), () if named else _commands(callers))),
                callers=tuple(callers),
                works=module in works,
                tests=tuple(sorted(_tests(name, module, tests))),
            )
        )
    return sorted(found, key=lambda pattern: (pattern.chapter, pattern.name))


def unfounded(root: Path) -> list[str]:
    """Find the labels that are not true: code that names a pattern and does not call the pattern's module.

    The code of a dataset is its asset (or the asset of its main dataset), its contract, and the building block that
    makes an asset of them. A pattern that decides when a dataset runs may be called by a sensor or a schedule instead,
    if that carries the label and handles the dataset.

    Args:
        root: The project's root.

    Returns:
        A sentence for each untrue label.
    """
    code = Code(root, CODE)
    modules = {slug(name): module for module, (name, _, _) in _modules(code).items()}
    tagged = {
        name: sorted(tag[len(TAG) :] for tag in definition.tags if tag.startswith(TAG) and tag != TAG)
        for name, definition in code.definitions.items()
    }
    problems = [
        f"{'.'.join(name)} has the label {label}, and its code does not call that module"
        for name, labels in tagged.items()
        for label in labels
        if modules.get(label) not in _called(code, [name])
    ]
    assets = _declaring(code, "assets.")
    contracts = _declaring(code, "quality.contracts.")
    for dataset, contract in EVERY.items():
        by = [name for name, declared in assets.items() if {dataset, contract.main or dataset} & declared]
        if dataset in STREAMED:
            by += [name for name, found in code.definitions.items() if STREAMS in found.uses]
        own = [*by, *(name for name, declared in contracts.items() if dataset in declared)]
        called = _called(code, [*own, *_blocks(code)], without=assets.keys() - set(by))
        for pattern in contract.patterns:
            starters = [name for name, labels in tagged.items() if slug(pattern) in labels]
            started = dataset in CONTRACTS and any(
                LINEAGE & code.definitions[name].uses for name in code.runs(starters)
            )
            if modules.get(slug(pattern)) not in called and not started:
                problems.append(f"{dataset} names {pattern}, and its code does not call that module")
    return problems


def _blocks(code: Code) -> list[Name]:
    return [name for name in code.definitions if name[0] == BUILDING_BLOCK]


def _declaring(code: Code, package: str) -> dict[Name, set[str]]:
    """List the definitions of a package that declare datasets, with their names."""
    return {
        name: definition.declares & EVERY.keys()
        for name, definition in code.definitions.items()
        if name[0].startswith(package) and definition.declares & EVERY.keys()
    }


def _modules(code: Code) -> dict[str, tuple[str, int, str]]:
    cards = {
        module: _card(code.root / file) for module, file in sorted(code.files.items()) if file.startswith(MECHANICS)
    }
    return {module: card for module, card in cards.items() if card is not None}


def _called(code: Code, roots: Iterable[Name], *, without: Iterable[Name] = ()) -> frozenset[str]:
    """List the modules with a public function that the code under some roots calls."""
    return frozenset(
        module for module, name in code.runs(roots, without=set(without)) if _is_public(code, module, name)
    )


def _callers(code: Code, module: str) -> Iterator[str]:
    for (caller, _), definition in code.definitions.items():
        if caller != module and any(_is_public(code, *used) and used[0] == module for used in definition.uses):
            yield code.files[caller]


def _commands(callers: Iterable[str]) -> list[str]:
    matches = [COMMAND.match(caller) for caller in callers]
    return [f"command `blogdata {match[1]}`" for match in matches if match]


def _is_public(code: Code, module: str, name: str) -> bool:
    definition = code.definitions.get((module, name))
    return definition is not None and definition.function and not name.startswith("_")


def render(patterns: Sequence[Pattern]) -> str:
    """Write the index as Markdown, with links relative to the folder `docs`."""
    lines = [
        "# Patterns",
        "",
        "Generated by `make docs` from the code; a test holds that it is current. A pattern's module bears its name,",
        "and the module's docstring is its card: the problem, how it works, the trap, when not to use it.",
        'In Dagster\'s UI the selection `tag:"pattern/late-data-detector"` shows the assets of a pattern.',
    ]
    for chapter in sorted({pattern.chapter for pattern in patterns}):
        lines += ["", f"## {CHAPTERS[chapter]} (chapter {chapter})", ""]
        lines += ["| pattern | used by | called from | tests |", "|---|---|---|---|"]
        for pattern in (one for one in patterns if one.chapter == chapter):
            used = [name if name == EVERY_DATASET else f"`{name}`" for name in pattern.datasets] + list(
                pattern.starters
            )
            cells = (
                f"[**{pattern.name}**](../{pattern.module}): {pattern.sentence}",
                ", ".join(used) or "–",
                ", ".join(_link(caller) for caller in pattern.callers) or "–",
                ", ".join(_link(test) for test in pattern.tests) or "–",
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _card(file: Path) -> tuple[str, int, str] | None:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    title, source = CARD.match(text), SOURCE.search(text)
    if title is None or source is None:
        return None
    if title["name"].lower().replace("-", "_").replace(" ", "_") != file.stem:
        return None
    return title["name"], int(source[1]), title["sentence"].rstrip(".")


def _users(definitions: dg.Definitions) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    datasets: dict[str, list[str]] = {}
    for name, contract in EVERY.items():
        for pattern in contract.patterns:
            datasets.setdefault(slug(pattern), []).append(name)
    graph = definitions.resolve_asset_graph()
    for key in sorted(graph.get_all_asset_keys()):
        name = ".".join(key.path)
        for tag in graph.get(key).tags:
            if tag.startswith(TAG) and name not in datasets.get(tag[len(TAG) :], []):
                datasets.setdefault(tag[len(TAG) :], []).append(name)
    starters: dict[str, list[str]] = {}
    for kind, found in (("sensor", definitions.sensors), ("schedule", definitions.schedules)):
        for starter in found or ():
            for tag in getattr(starter, "tags", {}):
                if tag.startswith(TAG):
                    starters.setdefault(tag[len(TAG) :], []).append(f"{kind} `{starter.name}`")
    return datasets, starters


def _tests(name: str, module: str, tests: Code) -> set[str]:
    modules = {test: file for test, file in tests.files.items() if Path(file).name.startswith("test_")}
    bear = {
        file
        for test, file in modules.items()
        if Path(file).stem == f"test_{module.rpartition('.')[2]}" or name in tests.docstring(test)
    }
    return bear or {file for test, file in modules.items() if module in tests.imported(test)}


def _link(path: str) -> str:
    return f"[{Path(path).stem}](../{path})"
