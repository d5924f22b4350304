"""Delta tables of a lake: paths, versions, commits, and datasets that live in several tables."""
