"""What makes the documentation's generated pages and measures their figures; not installed."""
