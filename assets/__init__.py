"""The blog's datasets: thin steps that read, call a pattern and publish."""
