from collections import Counter
from typing import Any

from blogdata.patterns.storage import normalizer
from quality.contracts import CONTRACTS
from quality.contracts.visits_model import DEVICES, STAR_HOSTS, VIEWS


def test_no_column_says_what_another_one_says() -> None:
    contracts = [CONTRACTS[name] for name in (VIEWS, DEVICES, STAR_HOSTS)]
    names = [column.name for table in contracts for column in table.columns if column.name not in table.identity]
    assert len(names) == len(set(names)) == 4, "views, device_name, site and kind"


def test_facts_about_what_is_unknown_are_not_dropped(spark: Any) -> None:
    facts = spark.createDataFrame([("a", True), ("b", False), (None, False)], "device STRING, known BOOLEAN")
    referring = normalizer.refer(facts, key=["device"], known="known", unknown="unknown")
    assert Counter(row.device for row in referring.collect()) == {"a": 1, "unknown": 2}
    assert referring.join(normalizer.entity(referring, key=["device"]), on="device").count() == 3
    reference = normalizer.entity(facts.where("known"), key=["device"])
    assert facts.join(reference, on="device").count() == 1, "what an inner join leaves of three page views"
