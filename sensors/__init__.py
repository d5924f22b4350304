"""What starts runs."""
