"""Evidence: the event log, the ledger, executions, deliveries, claims, and damage with its repair."""
