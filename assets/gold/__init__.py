"""Gold: what people read, by day and week of the events."""

from assets.gold.stats import page_stats, referral_stats
from assets.gold.visits_cube import visits_cube_daily, visits_cube_weekly
from assets.gold.visits_weekly import frozen_years, visits_weekly

ASSETS = (visits_cube_daily, visits_cube_weekly, visits_weekly, page_stats, referral_stats, frozen_years)
