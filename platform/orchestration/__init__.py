"""Dagster building blocks that know no blog."""
