"""The external components of a deployment: how they are fetched, started, checked and stopped."""
