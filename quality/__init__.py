"""The contracts of the blog's datasets, and the checks derived from them."""
