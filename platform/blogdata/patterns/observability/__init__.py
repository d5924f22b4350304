"""Observability patterns: lineage of datasets and columns, and detectors of interruption, skew, lag and misses."""
