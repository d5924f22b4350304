"""What makes the documentation's generated pages; not installed."""
