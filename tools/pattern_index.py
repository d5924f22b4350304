"""The pattern index: every pattern with its card, the datasets and sensors that use it, its callers, tests and defects.

Names and sources come from the modules' cards, callers from the calls in the code, tests from their names, docstrings
and imports. The users of a pattern carry its label: datasets in their contracts, assets, sensors and schedules in their
tags. A label must be true (:func:`unfounded`): the code that carries it does the work of the pattern, that is, it runs
a function that "How it works" of the card names; what else the module offers (clean-up, counts, views) is no use of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from blogdata.orchestration.names import slug
from quality.contracts import CONTRACTS, EVERY, STREAMED
from sensors.jobs import OPERATIONS
from tools import pattern_card, seeded_defects
from tools.call_graph import Definitions, Name
from tools.pattern_card import Card
from tools.seeded_defects import Defect
from tools.tried_only import Options

COMMAND = re.compile(r"platform/blogdata/cli/(\w+)_(?:commands?|logs)\.py$")
JOB = re.compile(r"platform/blogdata/operations/(\w+)\.py$")
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
MECHANICS = ("platform/blogdata/patterns", "platform/blogdata/orchestration", "platform/blogdata/secrets")
CODE = ("platform", "assets", "quality", "resources", "sensors", "definitions.py")
BUILDING_BLOCK = "blogdata.orchestration.dataset"
"""This module builds every dataset, so every dataset uses the patterns it calls."""
WATCHING = "assets.detector_checks"
"""This module builds the checks of the detectors that a contract declares."""
LINEAGE = frozenset({("quality.contracts", "GRAPH")})
"""Code that uses it handles every dataset that a run computes."""
STREAMS = ("quality.contracts", "STREAMED")
"""Code that uses it builds the datasets that a stream appends to."""
LIBRARY = "blogdata.patterns."
EVERY_DATASET = "every dataset"
TAG = "pattern/"


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One pattern of the index.

    Args:
        card: The docstring of its module.
        module: File of its module, relative to the project's root.
        below: Files of other modules whose functions its card names; they do its work.
        datasets: Datasets whose contract names it and assets that carry its tag; if there are none and the building
            block of all datasets does its work, every dataset.
        parts: Functions that do its work, to those of the datasets whose code runs them.
        starters: Sensors and schedules that carry its tag; if it has neither these nor datasets, the commands and jobs
            that call it.
        callers: Files of the modules that call it or those functions, relative to the root, without tests.
        works: Which of the functions that its card names code outside the pattern library runs, directly or through
            other modules.
        only_tested: What of it only tests try: other functions that its card names, and options that only tests give.
        tests: Test modules named after it or with its name in their docstring; if there are none, those that import it.
        defects: Seeded defects in these files or in a module beside its own that belongs to it, and those that the
            tests named after it notice.
    """

    card: Card
    module: str
    below: tuple[str, ...]
    datasets: tuple[str, ...]
    parts: Mapping[tuple[str, ...], tuple[str, ...]]
    starters: tuple[str, ...]
    callers: tuple[str, ...]
    works: tuple[str, ...]
    only_tested: tuple[str, ...]
    tests: tuple[str, ...]
    defects: tuple[Defect, ...]

    @property
    def name(self) -> str:
        """Its name, as in the book."""
        return self.card.name


def find(code: Definitions, definitions: dg.Definitions) -> list[Pattern]:
    """Build the index from the code.

    Args:
        code: The project's code.
        definitions: The deployed Dagster definitions.

    Returns:
        The patterns, by chapter and name.
    """
    tests = Definitions(code.root, ("tests",))
    options = Options(code, Definitions(code.root, (*CODE, "tests")))
    datasets, starters = _users(definitions)
    modules = _modules(code)
    work = {module: _verbs(code, module, card) for module, card in modules.items()}
    inner = frozenset().union(*work.values())
    works = code.runs(name for name in code.definitions.keys() - inner if not name[0].startswith(LIBRARY))
    everywhere, parts = code.runs(_blocks(code)), _parts(code, modules)
    defects, others = seeded_defects.read(code.root), [card.name for card in modules.values()]
    found = []
    for module, card in modules.items():
        label, verbs = slug(card.name), work[module]
        own = {module, *(of for of, _ in verbs)}
        callers = sorted(set(_callers(code, own)))
        named = datasets.get(label, [EVERY_DATASET] if verbs & everywhere else [])
        by_part: dict[tuple[str, ...], list[str]] = {}
        for dataset in named:
            part = parts.get((label, dataset), verbs & everywhere if dataset == EVERY_DATASET else frozenset())
            if part:
                by_part.setdefault(tuple(sorted(name for _, name in part)), []).append(dataset)
        bear = _named_after(card.name, module, tests, others)
        found.append(
            Pattern(
                card=card,
                module=code.files[module],
                below=tuple(sorted(code.files[of] for of in own - {module})),
                datasets=tuple(named),
                parts={part: tuple(datasets) for part, datasets in by_part.items()},
                starters=tuple(starters.get(label, () if named else _commands(callers))),
                callers=tuple(callers),
                works=tuple(sorted(name for _, name in verbs & works)),
                only_tested=(
                    *sorted(f"`{name}`" for _, name in verbs - works),
                    *options.only_tested([of for of in own if code.files[of].startswith(MECHANICS)]),
                ),
                tests=tuple(sorted(bear or _importing(module, tests))),
                defects=tuple(_defects(defects, bear, code, module, own, modules)),
            )
        )
    return sorted(found, key=lambda pattern: (pattern.card.chapter, pattern.name))


def unfounded(code: Definitions) -> list[str]:
    """Find the labels that are not true: code that names a pattern and does none of its work.

    The code of a dataset is its asset (or the asset of its main dataset), its contract, and the building block that
    makes an asset of them. A pattern that decides when a dataset runs may be called by a sensor or a schedule instead,
    if that carries the label and handles the dataset. A detector may be called by the checks that its spec adds.

    Args:
        code: The project's code.

    Returns:
        A sentence for each untrue label.
    """
    modules = _modules(code)
    verbs = {slug(card.name): _verbs(code, module, card) for module, card in modules.items()}
    tagged = [
        f"{'.'.join(name)} has the label {label}, and its code does none of its work"
        for name, labels in _tagged(code).items()
        for label in labels
        if not verbs.get(label, frozenset()) & code.runs(_whole(code, name))
    ]
    named = {slug(pattern): pattern for contract in EVERY.values() for pattern in contract.labels}
    return tagged + [
        f"{dataset} names {named[label]}, and its code does none of its work"
        for (label, dataset), found in _parts(code, modules).items()
        if not found
    ]


def _parts(code: Definitions, modules: Mapping[str, Card]) -> dict[tuple[str, str], frozenset[Name]]:
    """Find, for each label of each dataset's contract, the functions of the pattern that the dataset's code runs."""
    verbs = {slug(card.name): _verbs(code, module, card) for module, card in modules.items()}
    assets, contracts = _declaring(code, "assets."), _declaring(code, "quality.contracts.")
    watching = code.runs(name for name in code.definitions if name[0] == WATCHING)
    tagged = _tagged(code)
    found = {}
    for dataset, contract in EVERY.items():
        by = [name for name, declared in assets.items() if {dataset, contract.main or dataset} & declared]
        if dataset in STREAMED:
            by += [name for name, definition in code.definitions.items() if STREAMS in definition.uses]
        own = [*by, *(name for name, declared in contracts.items() if dataset in declared)]
        runs = code.runs([*own, *_blocks(code)], without=assets.keys() - set(by))
        for pattern in contract.labels:
            label = slug(pattern)
            part = verbs.get(label, frozenset()) & runs
            if not part and pattern in contract.watch.patterns:
                part = verbs[label] & watching
            if not part and dataset in CONTRACTS:
                started = code.runs(name for name, labels in tagged.items() if label in labels)
                handles = any(LINEAGE & code.definitions[name].uses for name in started)
                part = verbs[label] & started if handles else part
            found[label, dataset] = part
    return found


def _verbs(code: Definitions, module: str, card: Card) -> frozenset[Name]:
    """List what does the work of a pattern: what its card names, or else all public functions of its module."""
    named = {(name.rpartition(".")[0] or module, name.rpartition(".")[2]) for name in card.verbs}
    return frozenset(named & code.definitions.keys()) or frozenset(
        (of, name) for of, name in code.definitions if of == module and _is_public(code, of, name)
    )


def _whole(code: Definitions, name: Name) -> list[Name]:
    """List a definition, or all of the class that it is a method of."""
    of = name[1].partition(".")[0]
    return [(module, each) for module, each in code.definitions if module == name[0] and each.partition(".")[0] == of]


def _tagged(code: Definitions) -> dict[Name, list[str]]:
    return {
        name: sorted(tag[len(TAG) :] for tag in definition.texts if tag.startswith(TAG) and tag != TAG)
        for name, definition in code.definitions.items()
    }


def _blocks(code: Definitions) -> list[Name]:
    return [name for name in code.definitions if name[0] == BUILDING_BLOCK]


def _declaring(code: Definitions, package: str) -> dict[Name, set[str]]:
    """List the definitions of a package that declare datasets, with their names."""
    return {
        name: definition.declares & EVERY.keys()
        for name, definition in code.definitions.items()
        if name[0].startswith(package) and definition.declares & EVERY.keys()
    }


def _modules(code: Definitions) -> dict[str, Card]:
    cards = {
        module: pattern_card.read(code.root / file)
        for module, file in sorted(code.files.items())
        if file.startswith(MECHANICS)
    }
    return {module: card for module, card in cards.items() if card is not None}


def _callers(code: Definitions, own: Collection[str]) -> Iterator[str]:
    for (caller, _), definition in code.definitions.items():
        if caller not in own and any(_is_public(code, *used) and used[0] in own for used in definition.uses):
            yield code.files[caller]


def _commands(callers: Iterable[str]) -> list[str]:
    commands = [f"command `blogdata {match[1]}`" for caller in callers if (match := COMMAND.match(caller))]
    jobs = [f"job `{match[1]}`" for caller in callers if (match := JOB.match(caller)) and match[1] in OPERATIONS]
    return [*commands, *jobs]


def _is_public(code: Definitions, module: str, name: str) -> bool:
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


def _named_after(name: str, module: str, tests: Definitions, others: Iterable[str]) -> set[str]:
    own = f"test_{module.rpartition('.')[2]}"
    # A docstring that says Stateful Merger does not name the Merger.
    longer = [other for other in others if name in other and name != other]

    def names(docstring: str) -> bool:
        for other in longer:
            docstring = docstring.replace(other, "")
        return name in docstring

    return {file for test, file in _test_modules(tests) if Path(file).stem == own or names(tests.docstring(test))}


def _importing(module: str, tests: Definitions) -> set[str]:
    return {file for test, file in _test_modules(tests) if module in tests.imported(test)}


def _test_modules(tests: Definitions) -> list[tuple[str, str]]:
    return [(test, file) for test, file in tests.files.items() if Path(file).name.startswith("test_")]


def _defects(
    defects: Iterable[Defect],
    tests: set[str],
    code: Definitions,
    module: str,
    own: Collection[str],
    modules: dict[str, Card],
) -> Iterator[Defect]:
    package = f"{module.rpartition('.')[0]}."
    beside = {other for other in code.files if other.startswith(package) and other not in modules}
    belong = {other for other in beside if modules[module].name in code.docstring(other)}
    files = {code.files[other] for other in (*own, *belong)}
    yield from (defect for defect in defects if defect.file in files or defect.tests & tests)
