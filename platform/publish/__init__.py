"""Publishing: what a dataset promises, and the one audited way for rows to get into its table."""
