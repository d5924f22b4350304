"""Patterns of data security (chapter 7)."""
