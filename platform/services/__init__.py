"""Real components: fetch, start, health, stop."""
