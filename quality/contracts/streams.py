"""What the streams read, for those who look at a deployment from outside a run; without Spark."""

from pathlib import Path

from blogdata.patterns.error_management.streamed_files import StreamedFiles
from blogdata.planning.observed import StreamedInput
from quality.contracts import live, live_ads, live_sessions, streamed_by

VISITS = StreamedFiles(table="visits", suffixes=(".json", ".json.gz"))
ADS = StreamedFiles(table="ads", suffixes=VISITS.suffixes)


def streamed_inputs(checkpoints: Path) -> tuple[StreamedInput, ...]:
    """Return what the streams of a deployment read."""
    return tuple(
        StreamedInput(name=write.stream, source=source, checkpoints=checkpoints, contracts=streamed_by(write))
        for write, source in ((live.WRITTEN, VISITS), (live_ads.WRITTEN, ADS), (live_sessions.WRITTEN, VISITS))
    )
