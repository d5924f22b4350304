"""Bronze: what arrived, as it arrived."""
