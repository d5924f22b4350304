"""Delta tables of a lake: where they are, their versions and commits, and what lives in several tables."""
