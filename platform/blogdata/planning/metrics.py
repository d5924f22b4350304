"""Figures of a deployment for Prometheus: accounts, age, runs, files and findings, from recorded metadata only.

Times are exported as times, so that an age can be computed when a rule is evaluated; the age itself is exported for
people who look at the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from blogdata.errors.severity import Severity
from blogdata.evidence import ledger
from blogdata.evidence.ledger import LedgerLine
from blogdata.lake.lake import Lake
from blogdata.planning.clock import newest_end
from blogdata.planning.findings import Observed, standing
from blogdata.publish.contract import Contract

PREFIX = "blogdata_"


class Figures(Collector):
    """Figures of a deployment at one moment, as Prometheus collects them."""

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the figures."""
        yield from self._families


def registry(
    deployment: Observed,
    lake: Lake,
    contracts: Sequence[Contract],
    channels: Mapping[str, bool],
    ticks: Mapping[str, float],
) -> CollectorRegistry:
    """Read all figures of a deployment.

    Args:
        ticks: When each watching sensor last ticked, in seconds since 1970.
    """
    families = [
        _gauge("collected_timestamp_seconds", "When these figures were read.", [], [([], deployment.now.timestamp())]),
        *_of_datasets(deployment, lake, contracts),
        *_of_findings(deployment),
        _gauge(
            "alert_channel_failing",
            "1 if the channel did not take its last messages.",
            ["channel"],
            [([name], float(fails)) for name, fails in channels.items()],
        ),
        _gauge(
            "sensor_tick_timestamp_seconds",
            "When a sensor that watches the deployment last ran.",
            ["sensor"],
            [([name], at) for name, at in ticks.items()],
        ),
    ]
    found = CollectorRegistry(auto_describe=False)
    found.register(Figures(families))
    return found


def _of_datasets(deployment: Observed, lake: Lake, contracts: Sequence[Contract]) -> Iterator[GaugeMetricFamily]:
    lines = {one.dataset: ledger.audit(lake, deployment.look.events, one) for one in contracts}
    published = [one for one in contracts if lines[one.dataset]]
    yield _gauge(
        "dataset_info",
        "1 for each dataset that is published, with its owner.",
        ["dataset", "owner"],
        [([one.dataset, one.owner], 1.0) for one in published],
    )
    per_dataset: dict[str, tuple[str, Callable[[Sequence[LedgerLine]], float]]] = {
        "dataset_partitions": ("Published partitions.", len),
        "dataset_rows_in": ("Rows that the published partitions account for.", _rows_in),
        "dataset_rows_out": ("Rows in the published partitions.", _rows_out),
        "dataset_unaccounted_partitions": ("Partitions whose account does not add up.", _unaccounted),
        "dataset_last_run_seconds": ("Duration of the newest publication.", _last_run),
    }
    for name, (help_text, figure) in per_dataset.items():
        yield _gauge(name, help_text, ["dataset"], [([one.dataset], figure(lines[one.dataset])) for one in published])
    yield _gauge(
        "dataset_rows_left_out",
        "Rows of the input that are not rows of the dataset, by reason.",
        ["dataset", "reason"],
        [
            ([one.dataset, reason], float(rows))
            for one in published
            for reason, rows in sorted(_left_out(lines[one.dataset]).items())
        ],
    )
    yield from _ages(deployment.now, published, lines)
    sizes = {one.dataset: _files(lake, one.dataset) for one in published}
    for position, (name, help_text) in enumerate(
        (("dataset_files", "Files of the newest version."), ("dataset_bytes", "Bytes of these files."))
    ):
        yield _gauge(name, help_text, ["dataset"], [([key], float(size[position])) for key, size in sizes.items()])


def _ages(
    now: datetime, published: Sequence[Contract], lines: dict[str, Sequence[LedgerLine]]
) -> Iterator[GaugeMetricFamily]:
    keys = {name: [line.entry.partition for line in found] for name, found in lines.items()}
    ends = {one.dataset: end for one in published if (end := newest_end(one, keys[one.dataset])) is not None}
    promised = {one.dataset: most for one in published if (most := _promised(one)) is not None}
    for name, help_text, figures in (
        (
            "dataset_newest_partition_end_timestamp_seconds",
            "End of the newest published partition.",
            {key: end.timestamp() for key, end in ends.items()},
        ),
        (
            "dataset_age_seconds",
            "Time since the end of the newest published partition, when the figures were read.",
            {key: (now - end).total_seconds() for key, end in ends.items()},
        ),
        (
            "dataset_promised_age_seconds",
            "The greatest age that the contract allows.",
            {key: most.total_seconds() for key, most in promised.items()},
        ),
    ):
        yield _gauge(name, help_text, ["dataset"], [([key], figure) for key, figure in figures.items()])


def _of_findings(deployment: Observed) -> Iterator[GaugeMetricFamily]:
    found = standing(deployment)
    by_severity = Counter(finding.severity for finding in found)
    yield _gauge(
        "findings",
        "What a person should know now, by severity.",
        ["severity"],
        [([severity.value], float(by_severity[severity])) for severity in Severity],
    )
    counted = Counter((one.dataset, one.owner, one.source, one.severity.value) for one in found)
    yield _gauge(
        "dataset_findings",
        "What a person should know now, by dataset and by what found it.",
        ["dataset", "owner", "source", "severity"],
        [([*labels], float(count)) for labels, count in sorted(counted.items())],
    )


_Samples = Iterable[tuple[list[str], float]]


def _gauge(name: str, help_text: str, labels: list[str], samples: _Samples) -> GaugeMetricFamily:
    family = GaugeMetricFamily(PREFIX + name, help_text, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family


def _rows_in(lines: Sequence[LedgerLine]) -> float:
    return sum(line.entry.rows_in for line in lines)


def _rows_out(lines: Sequence[LedgerLine]) -> float:
    return sum(line.entry.rows_out for line in lines)


def _unaccounted(lines: Sequence[LedgerLine]) -> float:
    return sum(not line.balanced for line in lines)


def _last_run(lines: Sequence[LedgerLine]) -> float:
    return max(lines, key=lambda line: line.entry.version).entry.seconds


def _left_out(lines: Sequence[LedgerLine]) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(line.entry.reasons)
    return reasons


def _promised(contract: Contract) -> timedelta | None:
    if contract.freshness_hours is None or contract.grain is None:
        return None
    return contract.grain.length + timedelta(hours=contract.freshness_hours)


def _files(lake: Lake, dataset: str) -> tuple[int, int]:
    """Return the number of files of a dataset's newest version, and their bytes."""
    sizes = [
        size
        for part in lake.parts(dataset)
        for size in part.table.get_add_actions(flatten=True).column("size_bytes").to_pylist()
    ]
    return len(sizes), sum(sizes)
