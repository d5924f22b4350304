"""Secrets by their names: where their values are, and how they are fetched."""
