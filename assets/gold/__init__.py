"""Gold: datasets for analysts, by day and week of the events."""
