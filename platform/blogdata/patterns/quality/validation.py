"""Validation results: for each promise of a dataset, whether it holds.

It is written as one page that loads nothing: no script, style or image of another server.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blogdata.durable.whole_file import write_atomically

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 76rem; padding: 1rem; }
h1, h2 { line-height: 1.2; margin: 1rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
td, th { border-bottom: 1px solid #ddd; padding: .35rem .6rem; text-align: left; vertical-align: top; }
.passed { color: #17692f; }
.failed, .error { color: #a11722; }
a { color: #0b57a4; }
"""


def write_page(file: Path, validations: Sequence[Validation]) -> None:
    """Write a table of the datasets, and below it each promise with its result."""
    rows = "".join(map(_row, validations))
    promises = "".join(map(_promises, validations))
    page = (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>Data Docs</title>"
        f"<style>{STYLE}</style></head><body><h1>Data Docs</h1>"
        "<p>What every dataset promises, and whether its published rows keep it.</p>"
        "<table><thead><tr><th>Dataset</th><th>Result</th><th>Promises kept</th><th>Broken</th>"
        "<th>Could not be evaluated</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{promises}</body></html>"
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, page.encode(), mode=0o644)


def _row(validation: Validation) -> str:
    name = html.escape(validation.dataset)
    result = "error" if validation.errors else "passed" if validation.passed else "failed"
    broken = "<br>".join(html.escape(str(item)) for item in validation.broken)
    errors = "<br>".join(html.escape(f"{item.rule}: {item.error}") for item in validation.errors)
    return (
        f"<tr><td><a href='#{name}'>{name}</a></td><td class='{result}'>{result}</td>"
        f"<td>{validation.kept} of {len(validation.results)}</td><td>{broken}</td><td>{errors}</td></tr>"
    )


def _promises(validation: Validation) -> str:
    name = html.escape(validation.dataset)
    rows = (
        (
            html.escape(str(item)),
            html.escape(item.description),
            "error" if item.error else "passed" if item.passed else "failed",
        )
        for item in validation.results
    )
    cells = "".join(f"<tr><td>{rule}</td><td>{text}</td><td class='{how}'>{how}</td></tr>" for rule, text, how in rows)
    return f"<h2 id='{name}'>{name}</h2><table><tbody>{cells}</tbody></table>"


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """The result of one promise: it holds, it is broken, or it could not be evaluated.

    Args:
        error: First line of the exception that its evaluation raised, without the values it quotes; None if there
            was none.
    """

    rule: str
    description: str
    passed: bool
    found: int | None = None
    error: str | None = None

    def __str__(self) -> str:
        """The rule's name, followed by the number of violations if it was counted: `not_null.user_id (3)`."""
        return self.rule if self.found is None else f"{self.rule} ({self.found})"


@dataclass(frozen=True, kw_only=True)
class Validation:
    dataset: str
    results: Sequence[RuleResult]

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)

    @property
    def kept(self) -> int:
        return sum(result.passed for result in self.results)

    @property
    def broken(self) -> Sequence[RuleResult]:
        """The promises that were evaluated and do not hold."""
        return [result for result in self.results if not result.passed and result.error is None]

    @property
    def errors(self) -> Sequence[RuleResult]:
        """The promises that could not be evaluated, so it is unknown whether they hold."""
        return [result for result in self.results if result.error is not None]
