"""Measures the platform against hand-written peers, side by side in one run."""
