"""Micro-batches, published as the batches are."""
