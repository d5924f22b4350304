"""Contracts and checks of the blog's datasets."""
