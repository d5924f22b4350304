"""What leaves the lake: for PostgreSQL, a partner, other readers, and a person's query."""
