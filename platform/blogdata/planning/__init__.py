"""Plans what has to run, and in which order, from contracts, landing zone and event log; no JVM, no Dagster."""
