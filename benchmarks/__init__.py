"""What the platform costs: measurements of it, beside hand-written code for the same work."""
