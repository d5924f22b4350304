"""Who was forgotten, by keyed hashes, and whom landed lines name: what keeps persons away where lines enter."""
