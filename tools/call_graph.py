"""The call graph: the project's definitions, and which of them run when others run.

Read from the syntax tree, without running code. A definition is a function, a class, a method, or a constant at the top
of a module. It uses the definitions that its names resolve to, through imports and attributes of modules. A method runs
if its class is used and a running definition calls a method of its name.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Name = tuple[str, str]
"""Module, such as `assets.silver.visits`, and definition, such as `visits` or `Class.method`; empty: the module."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CALLED_BY_PYTHON = frozenset({"__init__", "__post_init__", "__call__", "__enter__"})


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One definition.

    Args:
        function: Whether it is a function at the top of a module.
        uses: Definitions it refers to.
        attributes: Names of the attributes it accesses, including the methods it calls.
        texts: All strings in it.
        declares: Strings passed to its decorators by position; for a constant built by a call, all strings in the call.
        tags: All strings in its decorators, or in that call.
    """

    function: bool
    uses: set[Name] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    declares: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Definitions:
    """The definitions of some of the project's folders.

    Args:
        root: The project's root.
        sources: Folders and files to read, relative to it.
    """

    root: Path
    sources: tuple[str, ...]

    @cached_property
    def files(self) -> dict[str, str]:
        """Map each module to its file, relative to the root."""
        paths = [self.root / source for source in self.sources]
        files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
        names = [str(file.relative_to(self.root)) for file in files]
        return {_module(name): name for name in names}

    @cached_property
    def definitions(self) -> dict[Name, Definition]:
        """Every definition."""
        return {
            (module, name): self._read(module, name, nodes)
            for module, tree in self.trees.items()
            for name, nodes in _top(tree)
        }

    def runs(self, roots: Iterable[Name], *, without: Collection[Name] = ()) -> frozenset[Name]:
        """Find the definitions that run when the roots run, directly or indirectly; the roots are included.

        Args:
            roots: Definitions to start from.
            without: Definitions that are not followed.
        """
        methods = [(module, *name.split(".")) for module, name in self.definitions if "." in name]
        seen, called, waiting = set[Name](), set(CALLED_BY_PYTHON), set(roots)
        while waiting := (waiting & self.definitions.keys()) - seen - set(without):
            seen |= waiting
            called.update(*(self.definitions[name].attributes for name in waiting))
            waiting = set[Name]().union(*(self.definitions[name].uses for name in waiting))
            waiting |= {
                (module, f"{of}.{name}") for module, of, name in methods if (module, of) in seen and name in called
            }
        return frozenset(seen)

    def imported(self, module: str) -> set[str]:
        """List the modules that a module imports or imports from."""
        return {owner for owner, _ in self._imports[module].values()}

    def docstring(self, module: str) -> str:
        """Return the docstring of a module; empty if it has none."""
        return ast.get_docstring(self.trees[module]) or ""

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The syntax tree of each module."""
        return {
            module: ast.parse((self.root / file).read_text(encoding="utf-8")) for module, file in self.files.items()
        }

    @cached_property
    def _imports(self) -> dict[str, dict[str, Name]]:
        return {module: dict(self._imported(tree)) for module, tree in self.trees.items()}

    @cached_property
    def _constants(self) -> dict[Name, str]:
        return {
            (module, name): node.value
            for module, tree in self.trees.items()
            for name, nodes in _top(tree)
            for node in nodes[:1]
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }

    def _imported(self, tree: ast.Module) -> Iterator[tuple[str, Name]]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((alias.asname or alias.name, (alias.name, "")) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield alias.asname or alias.name, (whole, "") if whole in self.files else (node.module, alias.name)

    def _read(self, module: str, name: str, nodes: Sequence[ast.AST]) -> Definition:
        decorated = any(isinstance(node, FUNCTIONS) for node in nodes)
        found = Definition(function=decorated and "." not in name)
        for part in [part for node in nodes for part in ast.walk(node)]:
            if isinstance(part, ast.Attribute):
                found.attributes.add(part.attr)
            if isinstance(part, ast.Attribute | ast.Name) and (used := self.meant(module, part)):
                found.uses.add(used)
        found.texts.update(self._texts(module, nodes))
        for call in [call for node in nodes for call in _made_by(node)]:
            found.tags.update(self._texts(module, [call]))
            found.declares.update(self._texts(module, call.args if decorated else [call]))
        return found

    def _texts(self, module: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
        for part in [part for node in nodes for part in ast.walk(node)]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
            elif isinstance(part, ast.Name) and (meant := self.meant(module, part)) in self._constants:
                yield self._constants[meant]

    def meant(self, module: str, node: ast.expr) -> Name | None:
        """Resolve a name, or an attribute of a module, to its definition."""
        if isinstance(node, ast.Name):
            return self._defined(self._imports[module].get(node.id, (module, node.id)))
        if not isinstance(node, ast.Attribute):
            return None
        owner = self.meant(module, node.value)
        if owner is None or owner[1]:
            return None
        whole = f"{owner[0]}.{node.attr}"
        return (whole, "") if whole in self.files else self._defined((owner[0], node.attr))

    def _defined(self, name: Name) -> Name:
        """Follow a name through packages that re-export it to its definition."""
        passed = self._imports.get(name[0], {}).get(name[1])
        return name if passed is None or passed == name else self._defined(passed)


def _module(file: str) -> str:
    return file.removeprefix("platform/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _top(tree: ast.Module) -> Iterator[tuple[str, Sequence[ast.AST]]]:
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield node.name, [node]
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, FUNCTIONS)]
            yield node.name, [*node.bases, *(one for one in node.body if one not in methods)]
            yield from ((f"{node.name}.{one.name}", [one]) for one in methods)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((one.id, [node.value]) for one in targets if isinstance(one, ast.Name))


def _made_by(node: ast.AST) -> list[ast.Call]:
    decorators = node.decorator_list if isinstance(node, FUNCTIONS) else [node]
    return [one for one in decorators if isinstance(one, ast.Call)]
