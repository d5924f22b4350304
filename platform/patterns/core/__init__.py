"""What every pattern shares: contracts, the lake, commits, the event log and the ledger."""
