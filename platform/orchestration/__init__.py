"""Dagster building blocks that know no blog: datasets from contracts, readiness, late data, planning."""
