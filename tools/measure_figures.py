"""Measures the figures of the patterns in a sample deployment: `make docs-figures`. It needs Spark and some minutes."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from blogdata.cli.output import console
from tools import sample_deployment
from tools.pattern_figures import FIGURES, Figure, Measured
from tools.sample_deployment import Sample

ROOT = Path(__file__).parent.parent
SEED = 7


def measure(sample: Sample) -> list[Figure]:
    """Ask a filled sample deployment all questions.

    Args:
        sample: The deployment.

    Returns:
        The figures, in the order of the declaration.
    """
    figures = []
    for pattern, questions in FIGURES.items():
        # One command for all figures of a pattern: each is a column.
        asked = ", ".join(f"({query}) AS figure_{number}" for number, (_, query) in enumerate(questions))
        (row,) = json.loads(sample.command("sql", f"SELECT {asked}", "--json"))
        for (label, query), value in zip(questions, row.values(), strict=True):
            console.print(f"{pattern}: {label}: {value}")
            figures.append(Figure(pattern=pattern, label=label, query=query, value=value))
    return figures


def main() -> int:
    """Fill a sample deployment in a temporary folder, measure it, and write the figures."""
    from assets.code import code

    with (
        tempfile.TemporaryDirectory(prefix="blogdata-figures-") as home,
        sample_deployment.filled(Path(home), seed=SEED) as sample,
    ):
        figures = measure(sample)
    how: dict[str, str | int] = {
        "command": "make docs-figures",
        "sample": sample_deployment.DESCRIPTION,
        "seed": SEED,
        "version": code().version,
    }
    Measured(how=how, figures=figures).write(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
