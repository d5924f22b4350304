"""Ingestion: how external data reaches the platform whole, once and marked as complete."""
