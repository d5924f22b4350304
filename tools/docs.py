"""Writes the generated parts of the documentation: `make docs`, or `python -m tools.docs [--check]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import dagster as dg

from blogdata.cli.main import COMMANDS
from blogdata.cli.output import console
from blogdata.errors import PlatformError
from blogdata.services.config import Settings
from blogdata.services.partner_settings import PartnerSettings
from blogdata.services.postgres_settings import PostgresSettings
from blogdata.services.table_settings import TableSettings
from quality.contracts import EVERY
from tools import (
    command_pages,
    contract_pages,
    detector_page,
    lineage_picture,
    pattern_index,
    pattern_pages,
    persons_page,
)
from tools.call_graph import Definitions
from tools.pattern_figures import Measured
from tools.pattern_index import Pattern

ROOT = Path(__file__).parent.parent


class MarkersMissing(PlatformError):
    """A page has no markers for its generated part."""


@dataclass(frozen=True)
class Project:
    """The project as its pages describe it; each part takes seconds, and is read when it is needed first.

    Args:
        root: The project's root.
    """

    root: Path = ROOT

    @cached_property
    def definitions(self) -> dg.Definitions:
        """The Dagster definitions with every optional service."""
        from definitions import build

        # Only the structure of the deployment is used: its folders need not exist, and no connection is made.
        nowhere = Path("/nowhere")
        served = PostgresSettings(url="postgresql://nowhere/nothing")
        fed = PartnerSettings(url="http://nowhere")
        loaded = TableSettings(
            devices="devices",
            users="users",
            legacy_visits="visits",
            since="2026-01-05",
            provider_visits=nowhere,
        )
        settings = Settings(home=nowhere, landing=nowhere, lake=nowhere, jars=nowhere)
        return build(replace(settings, postgres=served, partner=fed, tables=loaded))

    @cached_property
    def code(self) -> Definitions:
        """The code that the index of patterns is built from."""
        return Definitions(self.root, pattern_index.CODE)

    @cached_property
    def patterns(self) -> list[Pattern]:
        """The index of patterns."""
        return pattern_index.find(self.code, self.definitions)


def generated(project: Project) -> dict[Path, str]:
    """Render the files that are generated or have a generated part; return the full text of each.

    Args:
        project: The project.

    Raises:
        MarkersMissing: A page has no markers for its generated part.
    """
    root, patterns = project.root, project.patterns
    readme, architecture = root / "README.md", root / "docs" / "explanation" / "architecture.md"
    return {
        **{root / page: text for page, text in pattern_pages.render(patterns, Measured.read(root)).items()},
        root / "docs" / "reference" / "contracts.md": contract_pages.render(EVERY.values()),
        root / persons_page.PAGE: persons_page.render(EVERY.values()),
        root / detector_page.PAGE: detector_page.page(root),
        root / "docs" / "reference" / "command-line.md": command_pages.render(COMMANDS),
        root / "docs" / "explanation" / "lineage.md": lineage_picture.page(project.definitions),
        readme: _with_part(readme, "patterns", pattern_pages.listed(patterns)),
        architecture: _with_part(architecture, "ledger", contract_pages.ledger(EVERY.values())),
    }


def leftovers(files: Iterable[Path], root: Path = ROOT) -> list[Path]:
    """List the pages of patterns that no longer exist.

    Args:
        files: The files that are generated.
        root: The project's root.
    """
    return sorted({*(root / pattern_pages.FOLDER).glob("*.md")} - {*files})


def main(arguments: Sequence[str]) -> int:
    """Write the outdated files, or with `--check` only list them; list the pattern labels that are not true.

    Returns:
        1 if a label is not true or, with `--check`, a file is outdated; else 0.
    """
    project = Project()
    files = generated(project)
    stale = {
        file: text for file, text in files.items() if not file.is_file() or file.read_text(encoding="utf-8") != text
    }
    left = leftovers(files)
    check = "--check" in arguments
    for file in [*stale, *left]:
        done = "not current; run make docs" if check else "written" if file in stale else "removed"
        console.print(f"{file.relative_to(ROOT)}: {done}")
    if not check:
        for file, text in stale.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for file in left:
            file.unlink()
    untrue = pattern_index.unfounded(project.code)
    for problem in untrue:
        console.print(problem, style="red")
    return 1 if untrue or (check and (stale or left)) else 0


def _with_part(page: Path, name: str, part: str) -> str:
    first, last = f"<!-- {name}: generated by make docs -->", f"<!-- end of {name} -->"
    before, begin, rest = page.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise MarkersMissing(
            what=f"the page has no place for its generated part ({name})",
            where=str(page),
            next_step=f"put the lines '{first}' and '{last}' where it belongs",
        )
    return f"{before}{begin}\n{part}\n{end}{after}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
