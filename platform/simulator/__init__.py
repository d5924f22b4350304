"""The outside world, with known truth."""
