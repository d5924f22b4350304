"""What has to run, and in which order: from the contracts, the landing zone and the event log; no JVM, no Dagster."""
