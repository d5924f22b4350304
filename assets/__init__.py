"""The blog's datasets: tables and partitions."""
