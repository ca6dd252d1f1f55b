"""Which reads may go to a replica; tests/faults/test_replica.py has a real one."""

import pytest
from django.db import transaction

from centers.models import Center
from roombook.db import replica


@pytest.fixture
def reading_from_replica():
    token = replica._read_alias.set(replica.REPLICA_ALIAS)
    yield
    replica._read_alias.reset(token)


@pytest.mark.django_db(transaction=True)
def test_reads_in_a_transaction_and_writes_use_the_primary(reading_from_replica):
    router = replica.ReplicaRouter()

    assert router.db_for_read(Center) == replica.REPLICA_ALIAS
    assert router.db_for_write(Center) == "default"
    with transaction.atomic():
        assert router.db_for_read(Center) == "default"
    assert not router.allow_migrate(replica.REPLICA_ALIAS, "centers")


def test_lag_is_the_age_of_the_latest_position_that_was_replayed(monkeypatch):
    times = [100.0]
    positions = {"default": 50, replica.REPLICA_ALIAS: 50}
    monkeypatch.setattr(replica.time, "monotonic", lambda: times[-1])
    monkeypatch.setattr(replica, "read_position", lambda alias, sql: positions[alias])
    lag = replica.ReplicaLag(2)

    assert lag.check() is None
    # Nothing is replayed: for two seconds that is fine, also if the primary is written meanwhile.
    for time, position, problem in (
        *((101.0, 60, None), (102.0, 70, None)),
        *((103.0, 80, "it is more than 2 s behind"), (104.0, 90, "it is more than 2 s behind")),
    ):
        times.append(time)
        positions["default"] = position
        assert lag.check() == problem
    # It has reached the position of a second ago.
    positions[replica.REPLICA_ALIAS] = 80
    assert lag.check() is None
    # Neither of a new process nor of a primary that was a standby is anything known.
    positions["default"] = 95
    assert replica.ReplicaLag(2).check() == "it is more than 2 s behind"
    positions[replica.REPLICA_ALIAS] = None
    assert lag.check() == "it is not a standby"
