"""`blogdata job`: starts any of Dagster's jobs that operate on the data, in this process, and prints its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blogdata.cli.output import Json, TextGrid, console, existing, say_json
from blogdata.errors import ConfigurationError, refuse_unknown
from blogdata.operate.config import Settings

if TYPE_CHECKING:
    import dagster as dg

_KINDS = {"String": "text", "Int": "number", "Bool": "true or false"}


def job(
    name: Annotated[str | None, typer.Argument(help="Name of the job; none: list them")] = None,
    config: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE...", help="Its configuration; of a list, values separated by commas"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Start an operation on the data, or list the operations."""
    from definitions import build

    settings = existing()
    jobs = _operations(build(settings).get_repository_def().get_all_jobs())
    if name is None:
        _list(jobs, as_json=as_json)
        return
    refuse_unknown([name], jobs, where="job", kind="job")
    (node,) = jobs[name].nodes
    given = _config(name, _fields(node), config or [])
    _run(settings, name, {"ops": {node.name: {"config": given}}} if given else {}, as_json=as_json)


def _operations(jobs: Sequence[dg.JobDefinition]) -> Mapping[str, dg.JobDefinition]:
    """Leave out what `blogdata run` starts, the lineage, and what runs by partition."""
    alone = {job.name: job for job in jobs if len(job.nodes) == 1 and job.partitions_def is None}
    return dict(sorted(alone.items()))


def _fields(node: Any) -> Mapping[str, dg.Field]:
    return getattr(node.definition.config_schema.config_type, "fields", None) or {}


def _config(name: str, fields: Mapping[str, dg.Field], given: list[str]) -> dict[str, Any]:
    values = {}
    for key, equals, text in (pair.partition("=") for pair in given):
        if not equals:
            raise ConfigurationError(what=f"'{key}' is no KEY=VALUE", where=f"job {name}", next_step="write key=value")
        refuse_unknown([key], fields, where=f"job {name}", kind="configuration")
        values[key] = _value(f"{name}, {key}", fields[key].config_type, text)
    if missing := [key for key, field in fields.items() if field.is_required and key not in values]:
        raise ConfigurationError(
            what=f"{', '.join(missing)} is missing",
            where=f"job {name}",
            next_step="; ".join(f"{key}=…: {fields[key].description or 'a value'}" for key in missing),
        )
    return values


def _value(where: str, kind: Any, text: str) -> Any:
    if kind.kind.name == "ARRAY":
        return [_value(where, kind.inner_type, part) for part in text.split(",") if part]
    reads: dict[str, Callable[[str], Any]] = {
        "Int": int,
        "Bool": {"true": True, "false": False}.__getitem__,
        "String": str,
    }
    try:
        return reads[kind.given_name](text)
    except (KeyError, ValueError):
        raise ConfigurationError(
            what=f"'{text}' is no {_KINDS[kind.given_name]}", where=where, next_step="give another value"
        ) from None


def _list(jobs: Mapping[str, dg.JobDefinition], *, as_json: bool) -> None:
    configs = {
        name: {key: field.description for key, field in _fields(job.nodes[0]).items()} for name, job in jobs.items()
    }
    if as_json:
        say_json({name: {"description": jobs[name].description, "config": config} for name, config in configs.items()})
        return
    table = TextGrid()
    for title in ("job", "what it does, and its configuration"):
        table.add_column(title, no_wrap=title == "job")
    for name, config in configs.items():
        table.add_row(name, [jobs[name].description or "", *(f"  {key}=…  {what}" for key, what in config.items())])
    console.print(table)


def _run(settings: Settings, name: str, run_config: Mapping[str, Any], *, as_json: bool) -> None:
    from blogdata.cli.pipeline import Pipeline

    result = Pipeline(settings, quiet=as_json, command=f"job {name}").run_job(name, run_config)
    outcome = result.outcome
    if as_json:
        say_json(
            {
                "ok": outcome.ok,
                "result": {key: _plain(value) for key, value in result.metadata.items()},
                "problems": outcome.problems,
            }
        )
    else:
        _show(result.metadata)
        for problem in outcome.problems:
            console.print(problem.removeprefix(f"do_{name}: "), style="red")
    if not outcome.ok:
        raise typer.Exit(1)


def _plain(value: Any) -> Any:
    import dagster as dg

    return [dict(row.data) for row in value.records] if isinstance(value, dg.TableMetadataValue) else value.value


def _show(figures: Mapping[str, Any]) -> None:
    for name, value in figures.items():
        plain = _plain(value)
        if not isinstance(plain, list):
            console.print(f"{name}: {_cell(plain)}")
            continue
        if not plain:
            continue
        table = TextGrid()
        for title in plain[0]:
            table.add_column(title, justify="right" if isinstance(plain[0][title], int | float) else "left")
        for row in plain:
            table.add_row(*map(_cell, row.values()))
        console.print(table)


def _cell(value: Any) -> str:
    # A boolean is an integer, too.
    return f"{value:,}" if type(value) in (int, float) else str(value)
