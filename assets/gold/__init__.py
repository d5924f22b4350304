"""Gold: what people read, by day and week of the events."""
