"""Configuration files of the deployed components."""
