"""Bronze: what arrived, as it arrived."""

from assets.bronze.access_logs import hourly_access_logs
from assets.bronze.dead_letters import dead_letters
from assets.bronze.reference import devices, users
from assets.bronze.visits import visits

ASSETS = (hourly_access_logs, visits, dead_letters, users, devices)
