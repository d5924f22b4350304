"""Error management: nothing unreadable stops a job, and nothing it sets aside disappears."""
