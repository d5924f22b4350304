"""ops.data_docs: the published rows against their Great Expectations suites, as a page people can read."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession

from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.retries import reported
from blogdata.orchestration.run_values import values_only
from blogdata.patterns.quality.expectations import Project
from blogdata.patterns.quality.validation import RuleResult, Validation, write_page
from blogdata.publish.contract import Contract
from quality.contracts import CONTRACTS

KEY = dg.AssetKey(["ops", "data_docs"])
FOLDER = "data_docs"
"""Folder of the page, beside the landing zone."""


class DataDocsConfig(dg.Config):
    """Which partitions are validated."""

    newest: int = Field(24, description="Number of newest partitions of each dataset; 0: all of them")


def check_name(dataset: str) -> str:
    """Return the name of a dataset's check, such as `gold_page_stats` for `gold.page_stats`."""
    return dataset.replace(".", "_")


@dg.asset(
    key=KEY,
    description="What every dataset promises, and whether its published rows keep it, as a page (Data Docs); it looks "
    "at the newest partitions of every dataset that is computed by partitions, from bronze to gold",
    group_name="ops",
    owners=["team:platform"],
    kinds={"great_expectations", "spark"},
    check_specs=[
        dg.AssetCheckSpec(
            check_name(name),
            asset=KEY,
            description=f"The published rows of {name} keep every promise of its contract",
        )
        for name in CONTRACTS
    ],
    config_schema=values_only(DataDocsConfig),
    required_resource_keys={"spark", "lake"},
)
def data_docs(context: dg.AssetExecutionContext) -> Iterator[Any]:
    """Validate the datasets that exist, write the page, and report one check per dataset."""
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
    write_page(index, list(validations.values()))
    yield dg.MaterializeResult(
        metadata={
            "index": dg.MetadataValue.path(str(index)),
            "datasets": len(validations),
            "broken": sum(bool(validation.broken) for validation in validations.values()),
            "not_evaluated": sum(bool(validation.errors) for validation in validations.values()),
            "results": {name: summary(validation) for name, validation in validations.items()},
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


def summary(validation: Validation) -> str:
    line = f"{validation.kept} of {len(validation.results)} promises kept"
    if validation.broken:
        line += f"; broken: {', '.join(map(str, validation.broken))}"
    reasons: dict[str, list[str]] = {}
    for item in validation.errors:
        reasons.setdefault(str(item.error), []).append(item.rule)
    if reasons:
        reasons_of_rules = [f"{', '.join(rules)}: {reason}" for reason, rules in reasons.items()]
        line += f"; could not be evaluated: {'; '.join(reasons_of_rules)}"
    return line


def _check(dataset: str, validation: Validation | None) -> dg.AssetCheckResult:
    if validation is None:
        return dg.AssetCheckResult(
            check_name=check_name(dataset), asset_key=KEY, passed=True, description="nothing is published yet"
        )
    return dg.AssetCheckResult(
        check_name=check_name(dataset),
        asset_key=KEY,
        passed=validation.passed,
        severity=dg.AssetCheckSeverity.ERROR if validation.errors else dg.AssetCheckSeverity.WARN,
        description=summary(validation),
        metadata={
            "promises": len(validation.results),
            "broken": {item.rule: _counted(item) for item in validation.broken},
            "errors": {item.rule: item.error for item in validation.errors},
        },
    )


def _counted(result: RuleResult) -> str:
    return "not counted" if result.found is None else f"{result.found} (rows, groups or values)"
