"""Builds the Dagster assets of a dataset that is written to files by several branches, while one replaces another.

The run's graph: the choice, one step per branch, and the comparison of two. A branch that is not taken is skipped, a
failed one is red, and the comparison needs both. Each partition is a run of its own, so a slow or failed partition
keeps no other waiting (Concurrent Runner).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from blogdata.errors import PlatformError
from blogdata.evidence.events import EventLog
from blogdata.lake.commit import PARTITION_ROWS, kept
from blogdata.lake.lake import Lake
from blogdata.orchestration.calendar import Calendar
from blogdata.orchestration.computation import access_of, partitions_of
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.names import asset_key, step_of
from blogdata.orchestration.retries import failure, reported
from blogdata.patterns.data_flow import exclusive_choice, parallel_split
from blogdata.patterns.data_flow.concurrent_runner import BACKGROUND
from blogdata.patterns.data_flow.exclusive_choice import Choice, Phase
from blogdata.patterns.data_flow.parallel_split import Branch, Comparison, Receipt, SharedRead, Version
from blogdata.patterns.ingestion.whole_files import write_whole
from blogdata.patterns.observability import openlineage, reported_results
from blogdata.patterns.observability.dataset_tracker import NAMESPACE
from blogdata.patterns.observability.reported_results import EXPORTS
from blogdata.planning.sources import input_not_published
from blogdata.publish.contract import Contract

PHASE = "blogdata/phase"
"""Tag of a run: the phase that the choice has found."""
AGREES = "agrees"
COMPARED = "compared"
"""What a partition lacks whose files were written and not compared; also the end of that asset's name."""
_COMPARISON = "comparison.json"
_READ = "read"
"""Key of the version that the compared files were written from; earlier releases did not record it."""


@dg.resource(description="The rows that the branches of a run share; one per run")
def shared_rows(_: dg.InitResourceContext) -> SharedRead[tuple[Version, pa.Table]]:
    """Return what the branches of one run read, by partition."""
    return SharedRead()


class NotWritten(PlatformError):
    """Raised when a file cannot be put in place; the other branches are not affected."""


class NotComparable(PlatformError):
    """Raised when the branches of a partition were not written from the same version, or not all of them."""


@dataclass(frozen=True, kw_only=True)
class SplitFiles:
    """A dataset whose partitions are written to files by the branches that a choice takes.

    Args:
        name: What the assets are called, each with the name of its branch: `serving/NAME_BRANCH`.
        contract: Contract of the dataset that is read; it is partitioned.
        choice: Which branches a partition takes.
        branches: The writers: the one that is replaced, and the one that replaces it.
        key: Columns of the decoded files that identify a row.
        tolerances: Column of the decoded files to the largest difference that counts as equal.
        owner: Team that answers for the files, as `team:name`.
    """

    name: str
    contract: Contract
    choice: Choice
    branches: tuple[Branch, Branch]
    key: tuple[str, ...]
    tolerances: Mapping[str, float]
    owner: str

    def asset_of(self, branch: str) -> dg.AssetKey:
        """Return the asset key of a branch, or of :data:`COMPARED`."""
        return asset_key(f"serving.{self.name}_{branch}")

    @property
    def selection(self) -> dg.AssetSelection:
        """All assets: those of the branches, and the comparison."""
        return dg.AssetSelection.assets(*map(self.asset_of, (*self.choice.branches, COMPARED)))

    def folder(self, access: LakeResource) -> Path:
        """Return the folder of the files."""
        return access.landing_path.parent / EXPORTS / self.name

    def assets(self, calendar: Calendar) -> list[dg.AssetsDefinition]:
        """Build the assets; they require the resources `lake` and `shared_rows`.

        Args:
            calendar: The deployment's partition definitions.
        """
        grain = self.contract.grain
        assert grain is not None
        return [self._branches(calendar[grain]), self._compared(calendar[grain])]

    def job(self) -> Any:
        """Build the job that writes one partition: the choice, its branches and the comparison."""
        return dg.define_asset_job(
            step_of(f"serving.{self.name}_files"),
            selection=self.selection,
            description=f"The files of {self.contract.dataset}: the branches a partition takes, and their comparison",
            tags=BACKGROUND,
        )

    def due(self, lake: Lake, events: EventLog, folder: Path) -> Mapping[str, list[str]]:
        """Find the branches that lack what is published, by partition, the newest first; without opening a row.

        A partition that has all files, but not their comparison, lacks :data:`COMPARED`.

        Args:
            lake: The tables' root.
            events: The event log.
            folder: Folder of the files.
        """
        published = self._published(lake, events)
        found = {}
        for key in sorted(published, reverse=True):
            named = exclusive_choice.taken(self.choice, key).branches
            taken = [branch for branch in self.branches if branch.name in named]
            if missing := parallel_split.due(taken, folder, key, published[key]):
                found[key] = missing
            elif len(taken) > 1 and not _is_compared(folder, key, published[key]):
                found[key] = [COMPARED]
        return found

    def _published(self, lake: Lake, events: EventLog) -> Mapping[str, Version]:
        table = lake.caught_up(self.contract.dataset)
        if table is None:
            return {}
        name = str(table.metadata().id)
        entries = kept(events.publications(self.contract.dataset))
        return {key: Version(table=name, version=entry.version) for key, entry in entries.items()}

    def _branches(self, partitions: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
        choose = self._choose()
        steps = {branch.name: self._write(branch) for branch in self.branches}
        above = asset_key(self.contract.dataset)

        @dg.graph_multi_asset(
            name=f"{self.name}_files",
            ins={"above": dg.AssetIn(above, dagster_type=dg.Nothing)},
            outs={branch.name: self._out(branch) for branch in self.branches},
            group_name="serving",
            partitions_def=partitions,
            can_subset=True,
        )
        def files(above: Any) -> dict[str, Any]:
            chosen = choose(above)
            return {name: step(getattr(chosen, name)) for name, step in steps.items()}

        return files

    def _out(self, branch: Branch) -> dg.AssetOut:
        return dg.AssetOut(
            key=self.asset_of(branch.name),
            dagster_type=dg.Nothing,
            description=_described(self.contract, branch),
            is_required=False,
            owners=[self.owner],
            kinds={branch.name},
            tags={"pattern/parallel-split": "", "pattern/exclusive-choice": "", "pattern/concurrent-runner": ""},
        )

    def _choose(self) -> dg.OpDefinition:
        @dg.op(
            name=f"{self.name}_choose",
            description="Finds the branches of the partition by its key (Exclusive Choice)",
            ins={"above": dg.In(dg.Nothing)},
            out={branch.name: dg.Out(dg.Nothing, is_required=False) for branch in self.branches},
            required_resource_keys={"lake", "shared_rows"},
        )
        def choose(context: dg.OpExecutionContext) -> Iterator[Any]:
            try:
                (key,) = partitions_of(context, self.name)
                phase = self._phase(access_of(context), key)
            except PlatformError as error:
                raise failure(context, error) from error
            context.instance.add_run_tags(context.run_id, {PHASE: phase.name})
            # A run of one asset alone has the outputs of its branch only.
            branches = [name for name in phase.branches if name in context.selected_output_names]
            context.resources.shared_rows.announce(key, branches)
            for branch in branches:
                yield dg.Output(None, branch, metadata={"phase": phase.name, "since": phase.since or "ever"})

        return choose

    def _phase(self, access: LakeResource, key: str) -> Phase:
        if key not in self._published(access.lake, access.events):
            raise input_not_published(self.name, [key], [self.contract.dataset])
        return exclusive_choice.taken(self.choice, key)

    def _write(self, branch: Branch) -> dg.OpDefinition:
        @dg.op(
            name=f"{self.name}_{branch.name}",
            description=f"Writes the partition's {branch.name} file; its failure stops no other branch",
            ins={"chosen": dg.In(dg.Nothing)},
            out=dg.Out(dg.Nothing),
            required_resource_keys={"lake", "shared_rows"},
        )
        def write(context: dg.OpExecutionContext) -> dg.Output[None]:
            access, key, started_at = access_of(context), context.partition_key, datetime.now(timezone.utc)
            shared: SharedRead[tuple[Version, pa.Table]] = context.resources.shared_rows
            with reported(context):
                try:
                    read, rows = shared.take(key, branch.name, lambda: self._read(access, key))
                    folder = self.folder(access)

                    def report(receipt: Receipt) -> None:
                        self._report(branch, folder, key, receipt, job=context.job_name, started_at=started_at)

                    written = parallel_split.write(
                        branch, folder, key, rows, read, run_id=context.run.run_id, report=report
                    )
                except OSError as error:
                    raise _not_written(branch, key, error) from error
            return dg.Output(
                None,
                metadata={
                    PARTITION_ROWS: written.rows,
                    "bytes": written.bytes,
                    "read_version": read.version,
                    "read_in_this_run": shared.reads,
                    "bytes_shared": rows.nbytes,
                    "file": dg.MetadataValue.path(str(branch.path(self.folder(access), key))),
                },
            )

        return write

    def _report(
        self, branch: Branch, folder: Path, key: str, receipt: Receipt, *, job: str, started_at: datetime
    ) -> None:
        """Leave the OpenLineage events of a file beside the files, for the lineage (Dataset Tracker)."""
        dataset, read = f"serving.{self.name}_{branch.name}", receipt.read
        # The versions of a table that was built anew count anew.
        version = f"{key}@{read.table[:8]}-{read.version}"
        files = Contract(dataset=dataset, description=_described(self.contract, branch), owner=self.owner, columns=())
        publication = openlineage.PublishedVersion(
            dataset=dataset,
            version=version,
            run_id=receipt.run_id,
            job=job,
            started_at=started_at,
            ended_at=datetime.now(timezone.utc),
            inputs={self.contract.dataset: read.version},
            rows=receipt.rows,
            bytes=receipt.bytes,
        )
        events = openlineage.run_events(publication, {one.dataset: one for one in (files, self.contract)}, NAMESPACE)
        reported_results.leave(folder / reported_results.FOLDER, dataset, version, events)

    def _read(self, access: LakeResource, key: str) -> tuple[Version, pa.Table]:
        """Read a partition whole, with its version; rows newer than the version make it due again, never unnoticed."""
        dataset, column = self.contract.dataset, self.contract.partition_column
        version = self._published(access.lake, access.events)[key]
        table = access.lake.caught_up(dataset)
        assert table is not None
        assert column is not None
        batches = list(access.batches(dataset, table.version(), column, key))
        # A day without a page view has no batch, either.
        rows = pa.Table.from_batches(batches) if batches else pa.schema(table.schema().to_arrow()).empty_table()
        return version, rows.combine_chunks()

    def _compared(self, partitions: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
        key = self.asset_of(COMPARED)

        @dg.asset(
            key=key,
            description=f"Whether the files of both branches have the same rows of {self.contract.dataset}",
            group_name="serving",
            owners=[self.owner],
            kinds={"json"},
            tags={"pattern/parallel-split": ""},
            deps=[self.asset_of(branch.name) for branch in self.branches],
            partitions_def=partitions,
            required_resource_keys={"lake"},
            check_specs=[
                dg.AssetCheckSpec(AGREES, asset=key, description="No compared partition has rows that differ (warning)")
            ],
        )
        def compared(context: dg.AssetExecutionContext) -> Iterator[Any]:
            folder = self.folder(access_of(context))
            try:
                (partition,) = partitions_of(context, f"serving.{self.name}_{COMPARED}")
                found = self._compare(folder, partition)
            except PlatformError as error:
                raise failure(context, error) from error
            yield dg.MaterializeResult(
                metadata={**_metadata(found), "examples": list(found.examples)},
                check_results=[self._agrees(folder)],
            )

        return compared

    def _compare(self, folder: Path, key: str) -> Comparison:
        receipts = [parallel_split.receipt(branch, folder, key) for branch in self.branches]
        first, second = receipts
        if first is None or second is None or first.read != second.read:
            raise NotComparable(
                what="; ".join(
                    f"{branch.name}: {'no file' if found is None else f'version {found.read.version}'}"
                    for branch, found in zip(self.branches, receipts, strict=True)
                ),
                where=f"{self.name} {key}",
                next_step="materialize the branch without a file, or the one of the older version",
            )
        tables = [branch.decode(branch.path(folder, key).read_bytes()) for branch in self.branches]
        found = parallel_split.compare(*tables, key=self.key, tolerances=self.tolerances)
        kept = {**asdict(found), _READ: asdict(first.read)}
        write_whole(_comparison(folder, key), json.dumps(kept, sort_keys=True).encode())
        return found

    def _agrees(self, folder: Path) -> dg.AssetCheckResult:
        found = compared(folder)
        differing = {key: each for key, each in found.items() if not each.agrees}
        return dg.AssetCheckResult(
            check_name=AGREES,
            asset_key=self.asset_of(COMPARED),
            passed=not differing,
            severity=dg.AssetCheckSeverity.WARN,
            description=f"{len(differing)} of {len(found)} partitions differ" if differing else None,
            metadata={
                "compared": len(found),
                "days": dg.MetadataValue.table(
                    [dg.TableRecord({"partition": key, **_metadata(each)}) for key, each in sorted(found.items())]
                ),
            },
        )


def compared(folder: Path) -> Mapping[str, Comparison]:
    """Read the comparisons of all partitions.

    Args:
        folder: Folder of the split.
    """
    return {
        file.parent.name.removeprefix("date="): Comparison(**{**found, "examples": tuple(found["examples"])})
        for file in sorted((folder / COMPARED).glob(f"date=*/{_COMPARISON}"))
        for found in [{name: value for name, value in json.loads(file.read_bytes()).items() if name != _READ}]
    }


def _comparison(folder: Path, key: str) -> Path:
    return folder / COMPARED / f"date={key}" / _COMPARISON


def _is_compared(folder: Path, key: str, version: Version) -> bool:
    try:
        read = json.loads(_comparison(folder, key).read_bytes()).get(_READ)
    except FileNotFoundError:
        return False
    return read is None or Version(**read) == version


def _metadata(found: Comparison) -> dict[str, Any]:
    return {
        "equal": found.equal,
        "different": found.different,
        "only_first": found.only_first,
        "only_second": found.only_second,
        "largest_difference": ", ".join(f"{name} {by:g}" for name, by in sorted(found.largest.items())) or "none",
    }


def _described(contract: Contract, branch: Branch) -> str:
    return f"{contract.dataset} as one {branch.name} file per partition, while the choice takes it"


def _not_written(branch: Branch, key: str, error: OSError) -> NotWritten:
    return NotWritten(
        what=f"the {branch.name} file cannot be written: {error}",
        where=key,
        next_step="make room or mend the folder's permissions; then only this branch is run again",
    )
