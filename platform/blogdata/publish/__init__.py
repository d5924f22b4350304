"""Publishing: the contract of a dataset, and the one audited way to write its table."""
