"""Quality patterns: audited writes, constraints, observers."""
