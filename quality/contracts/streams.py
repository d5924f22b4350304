"""What the streams read, for those who look at a deployment from outside a run; without Spark."""

from pathlib import Path

from patterns.error_management.streamed_files import StreamedFiles
from planning.deployment import StreamedInput
from quality.contracts import STREAMED
from quality.contracts.live import WRITTEN

# Access logs come in bulk, and a line's visit depends on lines around it: the batch pipeline processes them.
VISITS = StreamedFiles(table="visits", suffixes=(".json", ".json.gz"))


def streamed_inputs(checkpoints: Path) -> tuple[StreamedInput, ...]:
    """Return what the streams of a deployment read.

    Args:
        checkpoints: Folder of the checkpoints of all streams.
    """
    return (StreamedInput(name=WRITTEN.stream, source=VISITS, checkpoints=checkpoints, contracts=STREAMED),)
