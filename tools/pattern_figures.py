"""The figures of the patterns: questions to the lake, and their answers in a sample deployment.

The answers are measured by `make docs-figures` and kept in `docs/patterns/figures.json`, so pages are written without
Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path("docs") / "patterns" / "figures.json"

_AGAIN = (
    "SELECT count(*) FROM (SELECT partition FROM ops.publications WHERE dataset = '{}'"
    " GROUP BY partition HAVING count(*) {})"
)
_PUBLISHED = "SELECT count(*) FROM ops.publications WHERE dataset = '{}'"
_LISTED = "SELECT concat_ws(', ', sort_array(collect_list(concat({0}, ' ', rows)))) FROM ({1} GROUP BY {0})"
_FILES = "SELECT count(DISTINCT file) FROM (SELECT input_file_name() AS file, event_hour FROM silver.visits)"
_INPUTS = "explode(map_keys(from_json(get_json_object(payload, '$.inputs'), 'map<string,bigint>')))"
_OBSERVED = "ops.events WHERE dataset = 'silver.visits' AND kind = 'publication'"
_MEASURES = "from_json(get_json_object(payload, '$.measures'), 'map<string,string>')"
_NULLS = f"double({_MEASURES}['null_share.referral'])"

FIGURES: Mapping[str, Sequence[tuple[str, str]]] = {
    "Full Loader": (
        ("Devices in the newest load", "SELECT count(*) FROM bronze.devices"),
        ("Loads, each of which replaced the whole table", _PUBLISHED.format("bronze.devices")),
    ),
    "Passthrough Replicator": (
        (
            "Parts of the access log, one for each of its hours",
            "SELECT count(DISTINCT source_file) FROM bronze.visits WHERE format = 'combined'",
        ),
        ("Lines in these parts", "SELECT count(*) FROM bronze.visits WHERE format = 'combined'"),
    ),
    "Readiness Marker": (
        ("Complete hours of arrival that were ingested once", _AGAIN.format("bronze.visits", "= 1")),
        ("Hours that were ingested more than once", _AGAIN.format("bronze.visits", "> 1")),
    ),
    "Checkpointer": (
        (
            "Batches planned, and committed",
            "SELECT concat(count(DISTINCT checkpoint, batch), ', ',"
            " count(DISTINCT checkpoint, if(committed, batch, NULL))) FROM ops.stream_offsets",
        ),
        ("Files in these batches", "SELECT sum(size(files)) FROM ops.stream_offsets"),
        ("Lines the stream published", "SELECT count(*) FROM bronze.visits_live"),
        (
            "Of these, lines published twice",
            "SELECT count(*) - count(DISTINCT source_file, source_offset) FROM bronze.visits_live",
        ),
    ),
    "Dead-Letter": (
        ("Lines received", "SELECT count(*) FROM bronze.visits"),
        ("Lines set aside", "SELECT count(*) FROM bronze.dead_letters"),
        (
            "Set aside, by reason",
            _LISTED.format(
                "reason",
                "SELECT reason, count(*) AS rows FROM"
                " (SELECT explode(array_distinct(transform(reasons, r -> split(r, ':')[0]))) AS reason"
                " FROM bronze.dead_letters)",
            ),
        ),
    ),
    "Dynamic Late Data Integrator": (
        (
            "Event hours computed again, because rows of a later arrival touched them",
            _AGAIN.format("silver.visits", "> 1"),
        ),
        ("Event hours computed once", _AGAIN.format("silver.visits", "= 1")),
    ),
    "Filter Interceptor": (
        (
            "Lines removed, by filter",
            _LISTED.format(
                "filtered_by",
                "SELECT filtered_by, count(*) AS rows FROM bronze.visits WHERE filtered_by IS NOT NULL",
            ),
        ),
        (
            "Lines of the access log that are page views",
            "SELECT count(*) FROM bronze.visits"
            " WHERE format = 'combined' AND filtered_by IS NULL AND size(reasons) = 0",
        ),
    ),
    "Late Data Detector": (
        ("Rows that arrived behind the watermark", "SELECT count(*) FROM silver.late_visits"),
        (
            "Their share of all usable rows",
            "SELECT format_string('%.1f %%', 100D * count(*) /"
            " (SELECT count(*) FROM bronze.visits WHERE size(reasons) = 0)) FROM silver.late_visits",
        ),
        (
            "Hours behind the watermark, median and maximum",
            "SELECT format_string('%.1f, %.1f', percentile(lateness_seconds, 0.5) / 3600,"
            " max(lateness_seconds) / 3600) FROM silver.late_visits",
        ),
    ),
    "Static Late Data Integrator": (
        ("Days within the lookback that were computed again", _AGAIN.format("gold.referral_stats", "> 1")),
        ("Days computed once", _AGAIN.format("gold.referral_stats", "= 1")),
    ),
    "Windowed Deduplicator": (
        ("Rows received", "SELECT sum(occurrences) FROM silver.visits"),
        ("Events, each kept once", "SELECT count(*) FROM silver.visits"),
        ("Repetitions left out", "SELECT sum(occurrences - 1) FROM silver.visits"),
        ("Of these, repetitions with another payload", "SELECT count(*) FROM silver.visit_conflicts"),
    ),
    "Data Overwrite": (
        ("Partitions that were replaced", _AGAIN.format("silver.visits_enriched", "> 1")),
        (
            "Events that are stored twice",
            "SELECT count(*) - count(DISTINCT visit_id, event_time, page) FROM silver.visits_enriched",
        ),
    ),
    "Fast Metadata Cleaner": (
        ("Weeks, each a table of its own", "SELECT count(DISTINCT event_week) FROM gold.visits_weekly"),
        ("Times the name was pointed to another table of a week", _PUBLISHED.format("gold.visits_weekly")),
        ("Rows behind the name", "SELECT count(*) FROM gold.visits_weekly"),
    ),
    "Keyed Idempotency": (
        (
            "Visits derived from the access log",
            "SELECT count(DISTINCT visit_id) FROM silver.visits WHERE format = 'combined'",
        ),
        (
            "Of these, visits that go on into another hour under the same id",
            "SELECT count(*) FROM (SELECT visit_id FROM silver.visits WHERE format = 'combined'"
            " GROUP BY visit_id HAVING count(DISTINCT event_hour) > 1)",
        ),
    ),
    "Merger": (
        ("Deliveries merged", _PUBLISHED.format("silver.devices")),
        ("Devices the newest delivery stands behind", "SELECT count(*) FROM silver.devices WHERE valid_to IS NULL"),
        (
            "Of these, rows an earlier delivery wrote and the newest did not change",
            "SELECT count(*) FROM silver.devices WHERE valid_to IS NULL"
            " AND changed_on < (SELECT max(load_date) FROM bronze.devices)",
        ),
    ),
    "Proxy": (
        ("Copies, each a load", _PUBLISHED.format("bronze.devices")),
        ("Day of the copy that the name shows", "SELECT max(load_date) FROM bronze.devices"),
    ),
    "Stateful Merger": (
        ("Executions in the table", "SELECT count(*) FROM ops.versions WHERE applied"),
        ("Merges", _PUBLISHED.format("silver.users_current")),
        (
            "Restorations before an old delivery was merged again",
            "SELECT count(*) FROM ops.events WHERE dataset = 'silver.users_current' AND kind = 'restoration'",
        ),
    ),
    "Transactional Writer": (
        (
            "Commits of `silver.visits` that published its conflicts, too",
            "SELECT count(DISTINCT table_version) FROM ops.publications WHERE dataset = 'silver.visits'",
        ),
        (
            "Conflicts counted in `silver.visits`, and rows in `silver.visit_conflicts`",
            "SELECT concat(sum(conflicts), ', ', (SELECT count(*) FROM silver.visit_conflicts)) FROM silver.visits",
        ),
    ),
    "Distributed Aggregator": (
        ("Page views", "SELECT sum(events) FROM gold.visits_cube_daily"),
        ("Groups in the cube of days", "SELECT count(*) FROM gold.visits_cube_daily"),
        (
            "Visits: sum over the groups, and distinct",
            "SELECT concat(sum(visits), ', ', (SELECT count(DISTINCT visit_id) FROM silver.visits_enriched))"
            " FROM gold.visits_cube_daily",
        ),
    ),
    "Metadata Decorator": (
        (
            "Publications whose run, code version and trigger are known",
            "SELECT count_if(run_id <> '' AND code_version <> '' AND trigger <> '') FROM ops.publications",
        ),
        ("Publications in all", "SELECT count(*) FROM ops.publications"),
        (
            "Triggers",
            "SELECT concat_ws(', ', sort_array(collect_set(trigger))) FROM ops.publications",
        ),
    ),
    "Static Joiner": (
        (
            "Facts before the join, and rows after it",
            "SELECT concat(count(*), ', ', (SELECT count(*) FROM silver.visits_enriched)) FROM silver.visits",
        ),
        ("Facts whose user had no version at the event", "SELECT count_if(NOT user_known) FROM silver.visits_enriched"),
        ("Versions of users", "SELECT count(*) FROM silver.users"),
        (
            "Users with several versions",
            "SELECT count(*) FROM (SELECT user_id FROM silver.users GROUP BY user_id HAVING count(*) > 1)",
        ),
    ),
    "Wrapper": (
        ("Rows", "SELECT count(*) FROM silver.visits"),
        (
            "Rows of `silver.visits_whole` whose `raw` is the received line, byte for byte",
            "SELECT count(*) FROM silver.visits_whole v JOIN bronze.visits b"
            " ON v.source_file = b.source_file AND v.source_offset = b.source_offset WHERE v.raw = b.raw",
        ),
    ),
    "Aligned Fan-In": (
        (
            "Days computed from all of their 24 hours",
            "SELECT count(DISTINCT event_date) FROM gold.page_stats WHERE hours_present = 24",
        ),
        (
            "Days computed from fewer, with the number on each row",
            "SELECT count(DISTINCT event_date) FROM gold.page_stats WHERE hours_present < 24",
        ),
        (
            "Hours in the weeks, of 168",
            "SELECT concat_ws(', ', sort_array(collect_set(hours_present))) FROM gold.visits_cube_weekly",
        ),
    ),
    "Horizontal Partitioner": (
        ("Partitions of `silver.visits`", "SELECT count(DISTINCT event_hour) FROM silver.visits"),
        ("Files of the table", _FILES),
        ("Files in the folder of one hour", f"{_FILES} WHERE event_hour = '2026-01-05T10'"),
    ),
    "Metadata Enhancer": (
        ("Files of `silver.visits`", _FILES),
        (
            "Files whose range of `event_time` holds 2026-01-05 10:30; a reader skips all others",
            "SELECT count(*) FROM (SELECT min(event_time) AS least, max(event_time) AS most FROM"
            " (SELECT input_file_name() AS file, event_time FROM silver.visits) GROUP BY file)"
            " WHERE TIMESTAMP'2026-01-05 10:30:00' BETWEEN least AND most",
        ),
    ),
    "Audit-Write-Audit-Publish": (
        ("Publications of a partition, all audited before their commit", "SELECT count(*) FROM ops.publications"),
        ("Rows in them", "SELECT sum(rows_out) FROM ops.events WHERE kind = 'publication'"),
    ),
    "Online Observer": (
        ("Measures in the commit of each hour", f"SELECT max(size({_MEASURES})) FROM {_OBSERVED}"),
        (
            "Share of page views without `referral`, by hour: smallest and largest",
            f"SELECT format_string('%.2f, %.2f', min({_NULLS}), max({_NULLS})) FROM {_OBSERVED}",
        ),
    ),
    "Dataset Tracker": (
        (
            "Datasets whose publications recorded their inputs",
            f"SELECT count(DISTINCT dataset) FROM (SELECT dataset, {_INPUTS} AS input FROM ops.events"
            " WHERE kind = 'publication')",
        ),
        (
            "Edges between datasets, from what runs really read",
            f"SELECT count(DISTINCT dataset, input) FROM (SELECT dataset, {_INPUTS} AS input FROM ops.events"
            " WHERE kind = 'publication')",
        ),
    ),
}
"""Pattern to the label and the query of each of its figures; a query has one row of one column."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured figure.

    Args:
        pattern: Name of the pattern.
        label: What was counted.
        query: The question, as `blogdata sql` takes it.
        value: The answer.
    """

    pattern: str
    label: str
    query: str
    value: str | int | float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The figures of one sample deployment.

    Args:
        how: How they were measured: the command, the sample, its seed, and the version of the code.
        figures: All figures, in the order of the declaration.
    """

    how: Mapping[str, str | int]
    figures: Sequence[Figure]

    @classmethod
    def read(cls, root: Path) -> Measured:
        """Read the measured figures; without the file there are none.

        Args:
            root: The project's root.
        """
        file = root / FILE
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return cls(how=found.get("how", {}), figures=[Figure(**one) for one in found.get("figures", ())])

    def write(self, root: Path) -> None:
        """Write the figures."""
        content = {"how": dict(self.how), "figures": [vars(figure) for figure in self.figures]}
        file = root / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def of(self, pattern: str) -> list[Figure]:
        """List the figures of a pattern."""
        return [figure for figure in self.figures if figure.pattern == pattern]
