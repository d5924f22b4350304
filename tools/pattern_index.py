"""The pattern index: every pattern with its card, the datasets and sensors that use it, its callers and tests.

Names, sources and the functions that do the work come from the modules' cards, callers from imports, tests from their
names, docstrings and imports. Datasets name their patterns in their contracts; assets, sensors and schedules in a tag.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import dagster as dg

from quality.contracts import EVERY
from tools import pattern_card
from tools.pattern_card import Card, module_name

COMMAND = re.compile(r"platform/blogdata/cli/(\w+)_(?:commands?|logs)\.py$")
JOB = re.compile(r"(?:platform/blogdata/(?:deliver|privacy)|sensors)/(\w+)\.py$")
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
MECHANICS = "platform/blogdata"
CODE = ("platform", "assets", "quality", "resources", "sensors", "definitions.py")
BUILDING_BLOCK = "blogdata.runs.step"
"""Every dataset is computed by this module, so every dataset uses the patterns that it imports."""
EVERY_DATASET = "every dataset"
TAG = "pattern/"


@dataclass(frozen=True)
class Code:
    """The modules below some folders."""

    root: Path
    sources: tuple[str, ...]

    @cached_property
    def files(self) -> dict[str, str]:
        """Each module, such as `assets.silver.visits`, and its file relative to the root."""
        paths = [self.root / source for source in self.sources]
        files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
        names = [str(file.relative_to(self.root)) for file in files]
        return {_module(name): name for name in names}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The syntax tree of each module."""
        return {
            module: ast.parse((self.root / file).read_text(encoding="utf-8")) for module, file in self.files.items()
        }

    @cached_property
    def imported(self) -> dict[str, set[str]]:
        """Each module and all that it imports: modules, and names after the module that they are imported from."""
        return {module: set(_imported(tree)) for module, tree in self.trees.items()}

    def importing(self, modules: set[str]) -> list[str]:
        """List the files of other modules that import one of these modules, or from it."""
        return sorted(
            self.files[name] for name, used in self.imported.items() if name not in modules and modules & used
        )


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One pattern of the index; all files are relative to the project's root.

    Args:
        work: The functions, classes and constants that its card names; without any its public functions.
        datasets: Datasets whose contract names it, and assets that carry its tag; if there are none and the building
            block of all datasets imports it, every dataset.
        starters: Sensors and schedules that carry its tag; if it has neither these nor datasets, the commands and
            jobs that call it.
        tests: Test modules named after it or with its name in their docstring; if there are none, those that import it.
    """

    card: Card
    module: str
    work: tuple[str, ...]
    below: tuple[str, ...]
    datasets: tuple[str, ...]
    starters: tuple[str, ...]
    callers: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name, as in the book."""
        return self.card.name


def find(root: Path, definitions: dg.Definitions) -> list[Pattern]:
    """Build the index from the code; the patterns are ordered by chapter and name."""
    code, tests = Code(root, CODE), Code(root, ("tests",))
    datasets, starters = _users(definitions)
    jobs = {job.name for job in definitions.jobs or ()}
    cards = {
        module: card
        for module, file in code.files.items()
        if file.startswith(MECHANICS) and (card := pattern_card.read(root / file)) is not None
    }
    patterns = []
    for module, card in cards.items():
        label = _label(card.name)
        named = [name.rpartition(".") for name in card.verbs if "." in name]
        # A class is imported by its name, a function often with its module.
        modules = {module, *(f"{of}.{name}" if name[0].isupper() else of for of, _, name in named)}
        callers = code.importing(modules)
        used = tuple(datasets.get(label, [EVERY_DATASET] if modules & code.imported[BUILDING_BLOCK] else []))
        patterns.append(
            Pattern(
                card=card,
                module=code.files[module],
                work=tuple(name.rpartition(".")[2] for name in card.verbs) or _functions(code.trees[module]),
                below=tuple(sorted({code.files[of] for of, *_ in named} - {code.files[module]})),
                datasets=used,
                starters=tuple(starters.get(label, () if used else _commands(callers, jobs))),
                callers=tuple(callers),
                tests=_tests(card.name, module, tests, [other.name for other in cards.values()]),
            )
        )
    return sorted(patterns, key=lambda pattern: (pattern.card.chapter, pattern.name))


def _module(file: str) -> str:
    return file.removeprefix("platform/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _label(pattern: str) -> str:
    return module_name(pattern).replace("_", "-")


def _functions(tree: ast.Module) -> tuple[str, ...]:
    names = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def _commands(callers: Iterable[str], names: set[str]) -> list[str]:
    commands = [f"command `blogdata {match[1]}`" for caller in callers if (match := COMMAND.match(caller))]
    jobs = [f"job `{match[1]}`" for caller in callers if (match := JOB.match(caller)) and match[1] in names]
    return [*commands, *jobs]


def _users(definitions: dg.Definitions) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
    """Find the datasets, and the sensors and schedules, of each label."""
    datasets: dict[str, list[str]] = {}
    for name, contract in EVERY.items():
        for pattern in contract.labels:
            datasets.setdefault(_label(pattern), []).append(name)
    graph = definitions.resolve_asset_graph()
    for key in sorted(graph.get_all_asset_keys()):
        name = ".".join(key.path)
        for tag in graph.get(key).tags:
            if tag.startswith(TAG) and name not in datasets.get(tag[len(TAG) :], []):
                datasets.setdefault(tag[len(TAG) :], []).append(name)
    starters: dict[str, list[str]] = {}
    for kind, instigators in (("sensor", definitions.sensors), ("schedule", definitions.schedules)):
        for starter in instigators or ():
            for tag in getattr(starter, "tags", {}):
                if tag.startswith(TAG):
                    starters.setdefault(tag[len(TAG) :], []).append(f"{kind} `{starter.name}`")
    return datasets, starters


def _tests(name: str, module: str, tests: Code, others: Iterable[str]) -> tuple[str, ...]:
    stem = f"test_{module.rpartition('.')[2]}"
    # A docstring that says Stateful Merger does not name the Merger.
    longer = [other for other in others if name in other and name != other]

    def names(test: str) -> bool:
        docstring = ast.get_docstring(tests.trees[test]) or ""
        for other in longer:
            docstring = docstring.replace(other, "")
        return name in docstring

    modules = {test: file for test, file in tests.files.items() if Path(file).name.startswith("test_")}
    bear = [file for test, file in modules.items() if Path(file).stem == stem or names(test)]
    return tuple(sorted(bear or [file for file in tests.importing({module}) if file in modules.values()]))
