"""Evidence: what was published, what accounts for each row, who claims what, and what is damaged."""
