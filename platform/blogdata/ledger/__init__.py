"""What happened: the event log of publications, their accounts, claims."""
