import pytest

from blogdata.contract.writes import Feed
from blogdata.deliver import partner
from blogdata.deliver.outbox import Delivery
from blogdata.patterns.data_value import wrapper


def test_a_partner_gets_the_row_in_an_envelope() -> None:
    """A column of the row may have the name of a computed value: they are apart."""
    one = Delivery(id="i", key="u", sequence=3, payload='{"key":"k","page":" /b "}')
    write = Feed(key="user_id", at="event_time", identity=(), payload=("key", "page"), unless="keep_private")
    sent = partner.sent_as(one, write=write, secret="s")
    token = partner.known_as("u", "s")
    assert sent == {"key": token, "sequence": 3, "payload": {"key": "k", "page": " /b "}}


def test_a_computed_value_cannot_replace_the_record() -> None:
    with pytest.raises(AssertionError, match="payload"):
        wrapper.envelope({"page": "/"}, {"payload": 1}, field="payload")
