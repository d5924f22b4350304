"""Small harmful changes to the mechanics, each of which some test must notice (`make mutants`)."""

from __future__ import annotations

from mutants.of_alerts import ALERTS
from mutants.of_branches import BRANCHES
from mutants.of_datasets import DATASETS
from mutants.of_events import EVENTS
from mutants.of_expiry import EXPIRED
from mutants.of_flow import FLOW
from mutants.of_loaders import LOADED
from mutants.of_merges import MERGED
from mutants.of_patterns import PATTERNS
from mutants.of_quality import QUALITY
from mutants.of_rights import RIGHTS
from mutants.of_starting import STARTING
from mutants.of_streams import STREAMED
from mutants.of_tables import TABLES
from mutants.of_values import VALUES
from mutants.of_writing import WRITING

MUTANTS = (
    *(*WRITING, *PATTERNS, *MERGED, *DATASETS, *TABLES, *STARTING, *QUALITY, *ALERTS, *EVENTS, *FLOW, *BRANCHES),
    *VALUES,
    *EXPIRED,
    *RIGHTS,
    *LOADED,
    *STREAMED,
)
