"""The check `late`: warns if most of a stream's newest rows are late."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from blogdata.lake.commit import Commit
from blogdata.patterns.error_management.late_data_detector import JUDGED_ROWS, MAX_LATE_SHARE, LateShare

LATE = "late"


def late_share_spec(key: dg.AssetKey) -> dg.AssetCheckSpec:
    """Return the check spec of a dataset whose accounts leave out late rows."""
    return dg.AssetCheckSpec(
        LATE,
        asset=key,
        description=f"At most {MAX_LATE_SHARE:.0%} of the newest {JUDGED_ROWS} rows came behind the watermark "
        "(warning)",
    )


def late_share_result(key: dg.AssetKey, commits: Iterable[Commit]) -> dg.AssetCheckResult:
    """Check the share of late rows in a dataset's appended commits, newest first."""
    share = LateShare.of(commits)
    return dg.AssetCheckResult(
        check_name=LATE,
        asset_key=key,
        passed=share.warning is None,
        severity=dg.AssetCheckSeverity.WARN,
        description=share.warning,
        metadata={"late": share.late, "rows": share.rows},
    )
