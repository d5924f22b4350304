"""Figures of a deployment for Prometheus: accounts, age, runs, files and findings, from recorded metadata only.

Times are exported as times, so that an age can be computed when a rule is evaluated; the age itself is exported for
people who look at the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Gauge

from blogdata.contract.contract import Contract
from blogdata.errors.finding import Severity
from blogdata.ledger import ledger
from blogdata.ledger.ledger import LedgerLine
from blogdata.planning.clock import newest_end
from blogdata.planning.snapshot import Observed
from blogdata.table.lake import Lake
from blogdata.watch.findings import standing
from quality.contracts import EVERY

PREFIX = "blogdata_"
_OF_DATASETS = {
    "dataset_partitions": "Published partitions.",
    "dataset_rows_in": "Rows that the published partitions account for.",
    "dataset_rows_out": "Rows in the published partitions.",
    "dataset_unaccounted_partitions": "Partitions whose account does not add up.",
    "dataset_last_run_seconds": "Duration of the newest publication.",
    "dataset_newest_partition_end_timestamp_seconds": "End of the newest published partition.",
    "dataset_age_seconds": "Time since the end of the newest published partition, when the figures were read.",
    "dataset_promised_age_seconds": "The greatest age that the contract allows.",
    "dataset_files": "Files of the newest version.",
    "dataset_bytes": "Bytes of these files.",
}


def registry(deployment: Observed) -> CollectorRegistry:
    metrics, lake = CollectorRegistry(), deployment.look.events.lake

    def gauge(name: str, text: str, *labels: str) -> Gauge:
        return Gauge(PREFIX + name, text, labels, registry=metrics)

    gauge("collected_timestamp_seconds", "When these figures were read.").set(deployment.now.timestamp())
    info = gauge("dataset_info", "1 for each dataset that is published, with its owner.", "dataset", "owner")
    figures = {name: gauge(name, text, "dataset") for name, text in _OF_DATASETS.items()}
    left_out = gauge(
        "dataset_rows_left_out", "Rows of the input that are not rows of the dataset, by reason.", "dataset", "reason"
    )
    for contract in EVERY.values():
        lines = ledger.audit(lake, deployment.look.events, contract)
        if not lines:
            continue
        info.labels(contract.dataset, contract.owner).set(1)
        for name, figure in _of_dataset(lake, contract, lines, deployment.now).items():
            figures[name].labels(contract.dataset).set(figure)
        for line in lines:
            for reason, rows in line.entry.reasons.items():
                left_out.labels(contract.dataset, reason).inc(rows)
    by_severity = gauge("findings", "What a person should know now, by severity.", "severity")
    for severity in Severity:
        by_severity.labels(severity.value)
    by_source = gauge(
        "dataset_findings",
        "What a person should know now, by dataset and by what found it.",
        *("dataset", "owner", "source", "severity"),
    )
    for finding in standing(deployment):
        by_severity.labels(finding.severity.value).inc()
        by_source.labels(finding.dataset, finding.owner, finding.source, finding.severity.value).inc()
    return metrics


def _of_dataset(lake: Lake, contract: Contract, lines: Sequence[LedgerLine], now: datetime) -> dict[str, float]:
    actions = [part.table.get_add_actions(flatten=True) for part in lake.parts(contract.dataset)]
    sizes = [size for files in actions for size in files.column("size_bytes").to_pylist()]
    figures = {
        "dataset_partitions": len(lines),
        "dataset_rows_in": sum(line.entry.rows_in for line in lines),
        "dataset_rows_out": sum(line.entry.rows_out for line in lines),
        "dataset_unaccounted_partitions": sum(not line.balanced for line in lines),
        "dataset_last_run_seconds": max(lines, key=lambda line: line.entry.version).entry.seconds,
        "dataset_files": len(sizes),
        "dataset_bytes": sum(sizes),
    }
    end = newest_end(contract, [line.entry.partition for line in lines])
    if end is not None:
        figures["dataset_newest_partition_end_timestamp_seconds"] = end.timestamp()
        figures["dataset_age_seconds"] = (now - end).total_seconds()
    if contract.freshness_hours is not None and contract.grain is not None:
        promised = contract.grain.length + timedelta(hours=contract.freshness_hours)
        figures["dataset_promised_age_seconds"] = promised.total_seconds()
    return figures
