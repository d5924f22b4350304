"""The fields that producers have announced, by landed table; others are kept in the raw line and reported as new."""

from blogdata.publish.column_types import parse_fields

VISIT = parse_fields(
    "visit_id STRING, user_id STRING, keep_private BOOLEAN, page STRING, context STRUCT<referral: STRING,"
    " ad_id: STRING, user: STRUCT<ip: STRING, login: STRING, connected_since: STRING>, technical: STRUCT<"
    "browser: STRING, browser_version: STRING, network_type: STRING, device_type: STRING, device_version: STRING>>,"
    " event_time STRING"
)
USER = parse_fields(
    "id STRING, login STRING, email STRING, registered_datetime STRING, first_connection_datetime STRING,"
    " last_connection_datetime STRING"
)
DEVICE = parse_fields("type STRING, full_name STRING, version STRING")
AD = parse_fields("ad_id STRING, page STRING, visit_id STRING, display_time STRING, campaign STRING")
