"""Dagster building blocks: contract -> asset, checks, the one driver, the run over the lineage."""
