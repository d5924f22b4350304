"""Erasure of persons: who they are known by, where their values are found, and how each place is cleared of them."""
