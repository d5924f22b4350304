"""Idempotency patterns: running again changes nothing."""
