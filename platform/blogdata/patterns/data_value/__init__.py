"""Data value: joins, decoration and aggregation that neither lose nor duplicate rows."""
