"""Observability patterns: lineage of datasets and columns."""
