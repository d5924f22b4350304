"""The analytics team's code location: computed from gold, in a process and an environment of its own.

It imports nothing of the platform. Both sides are tied by the contract of the tables it reads (:mod:`analytics.gold`).
"""
