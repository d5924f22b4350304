"""Silver: parsed, deduplicated and joined, by hour of the event."""
