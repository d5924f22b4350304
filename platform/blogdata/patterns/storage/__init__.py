"""Storage patterns: partitions and file statistics."""
