"""What a dataset promises: columns, rules, what it reads, how it is written, when it runs; what a publication says."""
