"""What comes in: files, logs and tables, the readers of their lines, dead letters, and who was forgotten."""
