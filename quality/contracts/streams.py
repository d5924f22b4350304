"""What the streams read, for those who look at a deployment from outside a run; without Spark."""

from pathlib import Path

from blogdata.contract.writes import Append
from blogdata.landing.streamed_files import StreamedFiles
from blogdata.planning.snapshot import StreamedInput
from quality.contracts import live, streamed_by

VISITS = StreamedFiles(table="visits", suffixes=(".json", ".json.gz"))
ADS = StreamedFiles(table="ads", suffixes=VISITS.suffixes)


def streamed_inputs(checkpoints: Path) -> tuple[StreamedInput, ...]:
    read = ((live.BRONZE, VISITS), (live.WITH_ADS_LIVE, ADS), (live.SESSIONS_LIVE, VISITS))
    return tuple(
        StreamedInput(
            name=contract.write.stream, source=source, checkpoints=checkpoints, contracts=streamed_by(contract.write)
        )
        for contract, source in read
        if isinstance(contract.write, Append)
    )
