"""Data flow patterns: what runs after what, and how many at once."""
