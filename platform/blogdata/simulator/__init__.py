"""Simulates the outside world: a landing zone with known truth."""
