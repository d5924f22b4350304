"""Evidence: the event log, the ledger, executions, deliveries and claims."""
