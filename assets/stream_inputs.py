"""What the streams read, for those who look at a deployment from outside a run; without Spark."""

from pathlib import Path

from blogdata.landing.streamed_files import StreamedFiles
from blogdata.planning.snapshot import StreamedInput
from quality.contracts.live import BRONZE, SESSIONS_LIVE, VISITS, WITH_ADS_LIVE

VISIT_FILES = StreamedFiles(table="visits", suffixes=(".json", ".json.gz"))
AD_FILES = StreamedFiles(table="ads", suffixes=VISIT_FILES.suffixes)


def streamed_inputs(checkpoints: Path) -> tuple[StreamedInput, ...]:
    streams = {
        "visits": (VISIT_FILES, (BRONZE, VISITS)),
        "ads": (AD_FILES, (WITH_ADS_LIVE,)),
        "sessions": (VISIT_FILES, (SESSIONS_LIVE,)),
    }
    return tuple(
        StreamedInput(
            name=name,
            source=source,
            checkpoints=checkpoints,
            contracts={contract.dataset: contract for contract in contracts},
        )
        for name, (source, contracts) in streams.items()
    )
