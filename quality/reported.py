"""The results outside the lake that are in the lineage: the editors' files, and what the analytics team computes."""

from pathlib import Path

from blogdata.patterns.observability.reported_results import EXPORTS, FOLDER, Reported, reported

TEAM = "analytics"
"""Folder of the team's results in the deployment's home."""


def reported_in(home: Path, landing: Path) -> list[Reported]:
    """Read what the writers of these results have left beside them, oldest first.

    Raises:
        ReportUnreadable: A file is not what a writer of OpenLineage leaves.
    """
    return reported([home / TEAM / FOLDER, *sorted((landing.parent / EXPORTS).glob(f"*/{FOLDER}"))])
