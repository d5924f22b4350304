"""Which datasets a deployment serves outside of the lake, by its settings."""

from blogdata.operate import postgres
from blogdata.operate.config import Settings
from quality.contracts.serving import DAILY_STATS, PARTNER_FEED


def configured(settings: Settings) -> tuple[str, ...]:
    served = [DAILY_STATS] * postgres.is_configured(settings) + [PARTNER_FEED] * (settings.partner.url is not None)
    return tuple(contract.dataset for contract in served)
