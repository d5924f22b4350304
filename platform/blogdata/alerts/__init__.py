"""Alerts: what somebody is told, through which channel, how often, and the record of what was sent."""
