"""`blogdata validate`: the published rows of any dataset against the Great Expectations suite of its contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from blogdata.cli.output import NOTHING_PUBLISHED, TextGrid, console, existing, is_new, say_json
from blogdata.cli.sql_command import session
from blogdata.errors import refuse_unknown
from blogdata.patterns.quality.validation import Validation
from quality.contracts import EVERY


def validate(
    datasets: Annotated[
        list[str] | None, typer.Argument(help="Datasets like silver.visits; all without one", show_default=False)
    ] = None,
    newest: Annotated[int, typer.Option(help="Newest partitions to look at; 0 for all", min=0)] = 24,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write the result pages to (Data Docs); replaced", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every promise as JSON")] = False,
) -> None:
    """Validate published rows against their contracts, by Great Expectations; exit code 1 when a promise is broken."""
    from blogdata.orchestration.lake_resource import LakeResource
    from blogdata.patterns.quality.expectations import Project
    from quality.data_docs import published

    refuse_unknown(datasets or [], EVERY, where="validate")
    settings = existing()
    if is_new(settings):
        console.print(NOTHING_PUBLISHED)
        return
    access = LakeResource(root=str(settings.lake), landing=str(settings.landing))
    project, found = Project(), list[Validation]()
    with session(settings) as spark:
        for name in datasets or EVERY:
            frame = published(spark, access, EVERY[name], newest)
            if frame is not None:
                found.append(project.validate(frame, EVERY[name]))
    if as_json:
        say_json([_as_json(one) for one in found])
    else:
        _show(found)
    if out is not None and found:
        index = project.render(out)
        if not as_json:
            console.print(f"pages:  {index}")
    if not all(one.passed for one in found):
        raise typer.Exit(1)


def _as_json(one: Validation) -> dict[str, Any]:
    return {
        "dataset": one.dataset,
        "passed": one.passed,
        "promises": [
            {"rule": result.rule, "passed": result.passed, "found": result.found, "error": result.error}
            for result in one.results
        ],
    }


def _show(found: list[Validation]) -> None:
    if not found:
        console.print(NOTHING_PUBLISHED)
        return
    from quality.data_docs import summary

    table = TextGrid()
    table.add_column("dataset")
    table.add_column("promises of its contract")
    for one in found:
        table.add_row(one.dataset, summary(one), style=None if one.passed else "red")
    console.print(table)
