"""Gives the page views of access logs their visits, which may have begun in earlier hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestration.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read_log_events(step: Step, rows: DataFrame, formats: frozenset[str]) -> DataFrame:
    raise RuntimeError
