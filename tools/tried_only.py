"""What of a pattern only tests try: its functions that no other code runs, and options that no other code gives."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tools.call_graph import FUNCTIONS, Definitions, Name

OF_TIME = frozenset({"now", "clock"})
"""Options by which a test sets the clock: no part of a pattern."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """The arguments of a call.

    Args:
        positions: How many are given by position.
        names: Those that are given by name; None stands for all of a mapping.
    """

    positions: int
    names: frozenset[str | None]

    def gives(self, option: str, position: int | None) -> bool:
        """Return whether an option may be given; the position is None if it can be given by name only."""
        return bool(self.names & {option, None}) or (position is not None and self.positions > position)


@dataclass(frozen=True)
class Options:
    """The options of functions and data classes, and who gives them.

    Args:
        code: The project's code, without tests.
        tests: The same with its tests.
    """

    code: Definitions
    tests: Definitions

    def only_tested(self, modules: Collection[str]) -> list[str]:
        """List the options of public functions and data classes that tests give, and no other code does.

        Args:
            modules: Modules whose functions and data classes are looked at.

        Returns:
            Each as `option of function`, in Markdown.
        """
        return [
            f"`{option}` of `{name}`"
            for module in sorted(modules)
            for name, option, position in _options(self.code.trees[module])
            if option not in OF_TIME | self._replaced
            and not any(call.gives(option, position) for call in self._by_code[module, name])
            and any(call.gives(option, position) for call in self._by_tests[module, name])
        ]

    @cached_property
    def _replaced(self) -> frozenset[str | None]:
        """Fields that code gives by `replace`, of whatever class."""
        by = self._by_code["dataclasses", "replace"]
        return frozenset[str | None]().union(*(call.names for call in by))

    @cached_property
    def _by_code(self) -> defaultdict[Name, list[Call]]:
        return _calls(self.code, self.code.files)

    @cached_property
    def _by_tests(self) -> defaultdict[Name, list[Call]]:
        return _calls(self.tests, self.tests.files.keys() - self.code.files.keys())


def _options(module: ast.Module) -> Iterator[tuple[str, str, int | None]]:
    """Iterate over what has a default: function or class, option, and its position."""
    for node in module.body:
        if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
            yield from ((node.name, option, position) for option, position in _defaults(node.args))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
            for position, field in enumerate(fields):
                if field.value is not None and isinstance(field.target, ast.Name):
                    yield node.name, field.target.id, position


def _defaults(given: ast.arguments) -> Iterator[tuple[str, int | None]]:
    first = len(given.args) - len(given.defaults)
    yield from ((each.arg, position) for position, each in enumerate(given.args) if position >= first)
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    yield from ((each.arg, None) for each, default in named if default is not None)


def _calls(code: Definitions, modules: Iterable[str]) -> defaultdict[Name, list[Call]]:
    found: defaultdict[Name, list[Call]] = defaultdict(list)
    for module in modules:
        for node in ast.walk(code.trees[module]):
            if isinstance(node, ast.Call):
                called, given = _called(node)
                meant = code.meant(module, called)
                if meant is not None:
                    names = frozenset(keyword.arg for keyword in node.keywords)
                    found[meant].append(Call(positions=len(given), names=names))
    return found


def _called(call: ast.Call) -> tuple[ast.expr, Sequence[ast.expr]]:
    """Return what is called, and what it is given by position; `partial` calls its first argument."""
    is_partial = isinstance(call.func, ast.Name) and call.func.id == "partial" and call.args
    return (call.args[0], call.args[1:]) if is_partial else (call.func, call.args)
