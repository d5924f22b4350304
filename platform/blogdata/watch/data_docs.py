"""ops.data_docs: the published rows against their Great Expectations suites, as a page people can read."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import dagster as dg
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession

from blogdata.contract.contract import Contract
from blogdata.files import write_atomically
from blogdata.runs.computation import ops_asset
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import values_only
from blogdata.runs.retries import reported
from blogdata.watch.expectations import Project, RuleResult
from quality.contracts import CONTRACTS

KEY = dg.AssetKey(["ops", "data_docs"])
FOLDER = "data_docs"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 76rem; padding: 1rem; }
table { border-collapse: collapse; width: 100%; }
td { border-bottom: 1px solid #ddd; padding: .35rem .6rem; vertical-align: top; }
.failed, .error { color: #a11722; }
"""


class DataDocsConfig(dg.Config):
    newest: int = Field(24, description="Number of newest partitions of each dataset; 0: all of them")


def check_name(dataset: str) -> str:
    return dataset.replace(".", "_")


@ops_asset(
    description="What every dataset promises, and whether its published rows keep it, as a page (Data Docs); it looks "
    "at the newest partitions of every dataset that is computed by partitions, from bronze to gold",
    kinds={"great_expectations", "spark"},
    check_specs=[
        dg.AssetCheckSpec(
            check_name(name), asset=KEY, description=f"The published rows of {name} keep every promise of its contract"
        )
        for name in CONTRACTS
    ],
    config_schema=values_only(DataDocsConfig),
    required_resource_keys={"spark", "lake"},
)
def data_docs(context: dg.AssetExecutionContext) -> Iterator[Any]:
    config = DataDocsConfig(**context.op_execution_context.op_config)
    access: LakeResource = context.resources.lake
    project = Project()
    validations = {}
    with reported(context), context.resources.spark.guard() as spark:
        for name, contract in CONTRACTS.items():
            frame = published(spark, access, contract, config.newest)
            if frame is not None:
                validations[name] = project.validate(frame, contract)
    index = access.landing_path.parent / FOLDER / "index.html"
    index.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(index, page(validations).encode(), mode=0o644)
    yield dg.MaterializeResult(
        metadata={
            "index": dg.MetadataValue.path(str(index)),
            "datasets": len(validations),
            "broken": sum(any(result.is_broken for result in results) for results in validations.values()),
            "not_evaluated": sum(any(result.error for result in results) for results in validations.values()),
            "results": {name: summary(results) for name, results in validations.items()},
        },
        check_results=[_check(name, validations.get(name)) for name in CONTRACTS],
    )


def published(spark: SparkSession, access: LakeResource, contract: Contract, newest: int) -> DataFrame | None:
    """Read so many newest partitions of a dataset at one version, of 0 all; None if it was never published."""
    version = access.lake.version(contract.dataset)
    if version is None:
        return None
    frame = access.lake.read(spark, contract.dataset, version)
    if contract.partitioning is None or newest == 0:
        return frame
    column = contract.partitioning.column
    keys = sorted(access.lake.row_counts(contract.dataset, column, version))[-newest:]
    return frame.where(frame[column].isin(keys))


def summary(results: Sequence[RuleResult]) -> str:
    line = f"{sum(result.passed for result in results)} of {len(results)} promises kept"
    if broken := [str(result) for result in results if result.is_broken]:
        line += f"; broken: {', '.join(broken)}"
    if errors := [f"{result.rule}: {result.error}" for result in results if result.error]:
        line += f"; could not be evaluated: {'; '.join(errors)}"
    return line


def page(validations: Mapping[str, Sequence[RuleResult]]) -> str:
    """Write the promises of each dataset as a page that loads nothing: no script, style or image of another server."""
    parts = []
    for name, results in validations.items():
        rows = (
            f"<tr class='{state}'><td>{escape(str(row))}</td><td>{escape(row.description)}</td><td>{state}</td></tr>"
            for row in results
            for state in ["error" if row.error else "passed" if row.passed else "failed"]
        )
        parts.append(f"<h2>{name}</h2><p>{escape(summary(results))}</p><table>{''.join(rows)}</table>")
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>Data Docs</title>"
        f"<style>{STYLE}</style></head><body><h1>Data Docs</h1>"
        f"<p>What every dataset promises, and whether its published rows keep it.</p>{''.join(parts)}</body></html>"
    )


def _check(dataset: str, results: Sequence[RuleResult] | None) -> dg.AssetCheckResult:
    known = results or ()
    return dg.AssetCheckResult(
        check_name=check_name(dataset),
        asset_key=KEY,
        passed=all(result.passed for result in known),
        severity=dg.AssetCheckSeverity.ERROR if any(result.error for result in known) else dg.AssetCheckSeverity.WARN,
        description="nothing is published yet" if results is None else summary(results),
        metadata={"promises": len(known)},
    )
