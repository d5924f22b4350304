"""The pattern index: every pattern with its card, the datasets and sensors that use it, its callers, tests and defects.

Names and sources come from the modules' cards, callers from the calls in the code, tests from their names, docstrings
and imports. The users of a pattern carry its label: datasets in their contracts, assets, sensors and schedules in their
tags. A label must be true (:func:`unfounded`): the code that carries it calls the pattern's module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from blogdata import pattern_card, seeded_defects
from blogdata.call_graph import Code, Name
from blogdata.pattern_card import Card
from blogdata.seeded_defects import Defect
from orchestration.names import slug
from quality.contracts import CONTRACTS, EVERY, STREAMED

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
WATCHING = "assets.detector_checks"
"""This module builds the checks of the detectors that a contract declares."""
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
        card: The docstring of its module.
        module: File of its module, relative to the project's root.
        datasets: Datasets whose contract names it and assets that carry its tag; if there are none and the building
            block of all datasets runs it, every dataset.
        starters: Sensors and schedules that carry its tag; if it has neither these nor datasets, the commands that
            call it.
        callers: Files of the modules that call it, relative to the root, without tests.
        works: Whether code outside the pattern library calls it, directly or through other modules.
        tests: Test modules named after it or with its name in their docstring; if there are none, those that import it.
        defects: Seeded defects in its module or in a module beside it that belongs to it, and those that the tests
            named after it notice.
    """

    card: Card
    module: str
    datasets: tuple[str, ...]
    starters: tuple[str, ...]
    callers: tuple[str, ...]
    works: bool
    tests: tuple[str, ...]
    defects: tuple[Defect, ...]

    @property
    def name(self) -> str:
        """Its name, as in the book."""
        return self.card.name


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
    defects, others = seeded_defects.read(root), [card.name for card in modules.values()]
    found = []
    for module, card in modules.items():
        label, callers = slug(card.name), sorted(set(_callers(code, module)))
        named = datasets.get(label, [EVERY_DATASET] if module in everywhere else [])
        bear = _named_after(card.name, module, tests, others)
        found.append(
            Pattern(
                card=card,
                module=code.files[module],
                datasets=tuple(named),
                starters=tuple(starters.get(label, () if named else _commands(callers))),
                callers=tuple(callers),
                works=module in works,
                tests=tuple(sorted(bear or _importing(module, tests))),
                defects=tuple(_defects(defects, bear, code, module, modules)),
            )
        )
    return sorted(found, key=lambda pattern: (pattern.card.chapter, pattern.name))


def unfounded(root: Path) -> list[str]:
    """Find the labels that are not true: code that names a pattern and does not call the pattern's module.

    The code of a dataset is its asset (or the asset of its main dataset), its contract, and the building block that
    makes an asset of them. A pattern that decides when a dataset runs may be called by a sensor or a schedule instead,
    if that carries the label and handles the dataset. A detector may be called by the checks that its spec adds.

    Args:
        root: The project's root.

    Returns:
        A sentence for each untrue label.
    """
    code = Code(root, CODE)
    modules = {slug(card.name): module for module, card in _modules(code).items()}
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
    watching = _called(code, [name for name in code.definitions if name[0] == WATCHING])
    for dataset, contract in EVERY.items():
        by = [name for name, declared in assets.items() if {dataset, contract.main or dataset} & declared]
        if dataset in STREAMED:
            by += [name for name, found in code.definitions.items() if STREAMS in found.uses]
        own = [*by, *(name for name, declared in contracts.items() if dataset in declared)]
        called = _called(code, [*own, *_blocks(code)], without=assets.keys() - set(by))
        for pattern in contract.labels:
            starters = [name for name, labels in tagged.items() if slug(pattern) in labels]
            started = dataset in CONTRACTS and any(
                LINEAGE & code.definitions[name].uses for name in code.runs(starters)
            )
            watched = pattern in contract.watch.patterns and modules.get(slug(pattern)) in watching
            if modules.get(slug(pattern)) not in called and not started and not watched:
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


def _modules(code: Code) -> dict[str, Card]:
    cards = {
        module: pattern_card.read(code.root / file)
        for module, file in sorted(code.files.items())
        if file.startswith(MECHANICS)
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


def _users(definitions: dg.Definitions) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    datasets: dict[str, list[str]] = {}
    for name, contract in EVERY.items():
        for pattern in contract.labels:
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


def _named_after(name: str, module: str, tests: Code, others: Iterable[str]) -> set[str]:
    own = f"test_{module.rpartition('.')[2]}"
    # A docstring that says Stateful Merger does not name the Merger.
    longer = [other for other in others if name in other and name != other]

    def names(docstring: str) -> bool:
        for other in longer:
            docstring = docstring.replace(other, "")
        return name in docstring

    return {file for test, file in _test_modules(tests) if Path(file).stem == own or names(tests.docstring(test))}


def _importing(module: str, tests: Code) -> set[str]:
    return {file for test, file in _test_modules(tests) if module in tests.imported(test)}


def _test_modules(tests: Code) -> list[tuple[str, str]]:
    return [(test, file) for test, file in tests.files.items() if Path(file).name.startswith("test_")]


def _defects(
    defects: Iterable[Defect], tests: set[str], code: Code, module: str, modules: dict[str, Card]
) -> Iterator[Defect]:
    package = f"{module.rpartition('.')[0]}."
    beside = {other for other in code.files if other.startswith(package) and other not in modules}
    own = {code.files[other] for other in beside if modules[module].name in code.docstring(other)}
    own.add(code.files[module])
    yield from (defect for defect in defects if defect.file in own or defect.tests & tests)
