"""Connections: Spark, the lake, the services."""
