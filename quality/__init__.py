"""What is promised about the blog's datasets, and the checks derived from it."""
