"""Validation results: for each promise of a dataset, whether it holds.

Makes rendered Data Docs self-contained: no script, style or image is loaded from another server.

The pages as rendered load a dozen files from public servers: that reveals to third parties who reads them, and leaves
the pages blank without internet access. Here they get one small style of their own and a first page without scripts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_FOREIGN = (
    re.compile(r"<script\b.*?</script>", re.DOTALL | re.IGNORECASE),
    re.compile(r"<link\b[^>]*\bhref=[\"']https?://[^>]*>", re.DOTALL | re.IGNORECASE),
    re.compile(r"<img\b[^>]*\bsrc=[\"']https?://[^>]*>", re.DOTALL | re.IGNORECASE),
    re.compile(r"<footer\b.*?</footer>", re.DOTALL | re.IGNORECASE),
)
_FOREIGN_URL = re.compile(r"url\(\s*[\"']?https?://[^)]*\)", re.IGNORECASE)

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 76rem; padding: 1rem; }
h1, h2, h3, h4, h5, h6 { line-height: 1.2; margin: 1rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
td, th { border-bottom: 1px solid #ddd; padding: .35rem .6rem; text-align: left; vertical-align: top; }
code, pre { font-size: 13px; white-space: pre-wrap; }
.alert, .card { background: #f6f7f8; border-radius: 4px; padding: .5rem 1rem; margin: .5rem 0; }
.passed, .text-success { color: #17692f; }
.failed, .error, .text-danger { color: #a11722; }
a { color: #0b57a4; }
"""


def self_contained(folder: Path, validations: Sequence[Validation]) -> None:
    """Rewrite the pages under a folder so that they load nothing from the network, and write the first page."""
    for page in folder.rglob("*.html"):
        page.write_text(_cleaned(page.read_text(encoding="utf-8")), encoding="utf-8")
    for style in folder.rglob("*.css"):
        style.write_text(_FOREIGN_URL.sub("none", style.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "index.html").write_text(_index(folder, validations), encoding="utf-8")


def _cleaned(page: str) -> str:
    for pattern in _FOREIGN:
        page = pattern.sub("", page)
    page = _FOREIGN_URL.sub("none", page)
    return page.replace("</head>", f"<style>{STYLE}</style></head>", 1)


def _index(folder: Path, validations: Sequence[Validation]) -> str:
    rows = "".join(_row(folder, validation) for validation in validations)
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>Data Docs</title>"
        f"<style>{STYLE}</style></head><body><h1>Data Docs</h1>"
        "<p>What every dataset promises, and whether its published rows keep it.</p>"
        "<table><thead><tr><th>Dataset</th><th>Result</th><th>Promises kept</th><th>Broken</th>"
        "<th>Could not be evaluated</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></body></html>"
    )


def _row(folder: Path, validation: Validation) -> str:
    parts = validation.dataset.split(".")
    pages = sorted(folder.joinpath("validations", *parts).rglob("*.html"))
    name = html.escape(validation.dataset)
    suite = "/".join(("expectations", *parts)) + ".html"
    result = "error" if validation.errors else "passed" if validation.passed else "failed"
    link = f"<a href='{html.escape(pages[-1].relative_to(folder).as_posix())}'>{result}</a>" if pages else result
    broken = "<br>".join(html.escape(str(item)) for item in validation.broken)
    errors = "<br>".join(html.escape(f"{item.rule}: {item.error}") for item in validation.errors)
    return (
        f"<tr><td><a href='{suite}'>{name}</a></td><td class='{result}'>{link}</td>"
        f"<td>{validation.kept} of {len(validation.results)}</td><td>{broken}</td><td>{errors}</td></tr>"
    )


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
