"""What lands: the fields that producers have announced, by landed table, and what holds of every landed line.

Other fields are kept in the raw line and reported as new.
"""

from functools import partial

from blogdata.contract.column_types import parse_fields
from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain
from blogdata.contract.schema import Partitioning, RowRule
from blogdata.contract.watch import Lag, Sla, Watch

VISIT = parse_fields(
    "visit_id STRING, event_time STRING, user_id STRING, keep_private BOOLEAN, page STRING, context STRUCT<"
    "referral: STRING, ad_id: STRING, user: STRUCT<ip: STRING, login: STRING, connected_since: STRING>,"
    " technical: STRUCT<browser: STRING, browser_version: STRING, network_type: STRING, device_type: STRING,"
    " device_version: STRING>>"
)
LEGACY_VISIT = parse_fields(
    "visit_id STRING, event_time TIMESTAMP, user_id STRING, keep_private BOOLEAN, page STRING, referral STRING,"
    " ad_id STRING, ip STRING, login STRING, connected_since TIMESTAMP, browser STRING, browser_version STRING,"
    " network_type STRING, device_type STRING, device_version STRING, ingestion_time TIMESTAMP, is_deleted BOOLEAN"
)
"""Columns of a table of visits."""
OF_LEGACY_VISITS = parse_fields("ingestion_time STRING, is_deleted BOOLEAN")
"""What lines of such a table have besides the fields of a visit."""
USER = parse_fields(
    "id STRING, login STRING, email STRING, registered_datetime STRING, first_connection_datetime STRING,"
    " last_connection_datetime STRING"
)
CHANGED_USER = parse_fields(
    "id STRING, login STRING, email STRING, registered_datetime TIMESTAMP, first_connection_datetime TIMESTAMP,"
    " last_connection_datetime TIMESTAMP, updated_at TIMESTAMP, is_deleted BOOLEAN"
)
"""Columns of a table of users."""
OF_CHANGED_USERS = parse_fields("updated_at STRING, is_deleted BOOLEAN")
"""What lines of such a table have besides the fields of a delivered user."""
DEVICE = parse_fields("type STRING, full_name STRING, version STRING")
AD = parse_fields("ad_id STRING, page STRING, visit_id STRING, display_time STRING, campaign STRING")

ARRIVAL = Partitioning(column="arrival_hour", grain=Grain.HOUR)
LOAD = Partitioning(column="load_date", grain=Grain.DAY)
BYTES = "sum(length(raw) + 1)"
ERASED = {"erased": "lines of persons who were forgotten, overwritten in the landed files or taken out of the table"}
TAKEN_OUT = {"erased": "rows of persons who were forgotten, taken out of the table"}
LANDED_LINES = "lines of each landed file, counted without Spark; their bytes too"
POSITION_IS_REAL = RowRule("position_is_real", "source_offset >= 0", "The line can be found again")
HAS_A_REASON = RowRule("has_a_reason", "size(reasons) > 0", "Nothing is rejected without a reason")
POSITION = ("source_file", "source_offset")
dead_letters = partial(
    Contract,
    owner="team:platform",
    key=POSITION,
    partitioning=ARRIVAL,
    left_out={"usable": ""},
    rules=(HAS_A_REASON,),
    max_share=0.75,
    statistics=("source_offset",),
    patterns=("Dead-Letter",),
    freshness_hours=1,
    watch=Watch(lag=Lag(), sla=Sla()),
)
"""The contract of the unusable lines of a landed table."""
conflicts = partial(
    Contract,
    owner="team:analytics",
    key=POSITION,
    left_out={"identical": ""},
    patterns=("Windowed Deduplicator", "Transactional Writer"),
)
"""The contract of rows that lost to an earlier one with the same identity and another payload."""
