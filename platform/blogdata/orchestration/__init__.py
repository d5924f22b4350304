"""Domain-free Dagster building blocks: datasets from contracts, readiness, late data, planning."""
