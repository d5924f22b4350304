"""The platform: how data is written, planned, watched and served."""
