"""Persons and time: erasure, the rotation of keys, and the end of retention."""
