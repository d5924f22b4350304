"""The machine: settings, Java, jars, Spark, PostgreSQL, secrets, Dagster's storage."""
