"""Silver: parsed, deduplicated and joined, by hour of the event."""

from assets.silver.enriched import visits_enriched
from assets.silver.late_visits import late_visits
from assets.silver.reference import devices, users, users_current
from assets.silver.visits import visits

ASSETS = (visits, late_visits, users, users_current, devices, visits_enriched)
