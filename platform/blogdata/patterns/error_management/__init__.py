"""Error management: an unreadable row does not stop a job, and a rejected row is never lost."""
