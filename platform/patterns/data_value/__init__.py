"""Data value: joins, decoration and aggregation that lose and double nothing."""
