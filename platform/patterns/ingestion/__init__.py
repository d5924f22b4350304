"""Ways in: how data of the outside reaches the platform, whole, once and marked as complete."""
