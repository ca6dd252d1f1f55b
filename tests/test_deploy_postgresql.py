"""The files of PostgreSQL, PgBouncer and Patroni in deploy/, read by these programs themselves."""

import os
import re
import shutil
import subprocess

import psycopg2
import pytest

from roombook.db.postgresql.base import require_session_limits
from tests.faults.database import Cluster, programs
from tests.faults.pgbouncer import PROGRAM as PGBOUNCER
from tests.faults.pgbouncer import PgBouncer
from tests.test_deployment import DEPLOY

PATRONI = shutil.which("patroni")
PASSWORD = "word with 'quotes' and \\"

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def cluster():
    """A cluster with the settings and the access rules of deploy/, and the role of the service."""
    if (folder := programs()) is None:
        pytest.skip("no PostgreSQL server programs on this machine")
    made = Cluster(folder)
    try:
        made.initialize("--auth=trust")
        settings = (DEPLOY / "postgresql/roombook.conf").read_text()
        # Less memory than on a server.
        settings = settings.replace("shared_buffers = 2GB", "shared_buffers = 16MB")
        with (made.data / "postgresql.conf").open("a") as file:
            file.write(settings)
        shutil.copyfile(DEPLOY / "postgresql/pg_hba.conf", made.data / "pg_hba.conf")
        made.start_server()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def role(cluster):
    # Safe to run again.
    for password in ("another", PASSWORD):
        # With pg_hba.conf, only administrators of the machine may create it, by the socket.
        cluster.create_service_role(password)
    return {"user": "roombook", "dbname": "roombook", "password": PASSWORD, "host": "127.0.0.1"}


def test_role_of_the_service_signs_in_with_its_limits_and_without_other_rights(cluster, role):
    session = psycopg2.connect(port=cluster.port, **role)
    try:
        require_session_limits(session)
        with session.cursor() as cursor:
            cursor.execute(
                "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication,"
                " pg_get_userbyid(datdba) = current_user, current_setting('synchronous_commit')"
                " FROM pg_roles, pg_database WHERE rolname = current_user"
                " AND datname = current_database()"
            )
            assert cursor.fetchone() == (False, True, "on")
    finally:
        session.close()
    for other in ({"dbname": "postgres"}, {"user": "postgres"}, {"password": "another"}):
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(port=cluster.port, **role | other)


@pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
def test_pgbouncer_passes_the_role_of_the_service_on_with_its_limits(cluster, role):
    pooler = PgBouncer(
        host="127.0.0.1",
        server_port=cluster.port,
        role="roombook",
        password=PASSWORD,
    )
    try:
        session = psycopg2.connect(port=pooler.port, **role)
        require_session_limits(session)
        session.close()
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(port=pooler.port, **role | {"password": "another"})
    finally:
        pooler.stop()


@pytest.mark.skipif(PATRONI is None, reason="Patroni is not installed")
def test_patroni_accepts_its_configuration(tmp_path):
    configuration = (DEPLOY / "patroni/patroni.yml").read_text()
    file = tmp_path / "patroni.yml"
    file.write_text(re.sub("(data_dir): .*", rf"\1: {tmp_path}/data", configuration))
    variables = re.findall("^([A-Z0-9_]+)=(.*)$", (DEPLOY / "patroni/node.env").read_text(), re.M)

    checked = subprocess.run(
        [PATRONI, "--validate-config", file],
        env={"PATH": os.environ["PATH"], **dict(variables)},
        capture_output=True,
        text=True,
        check=False,
    )

    # It looks for etcd at once, and requires rules for initdb though those of the server follow.
    is_expected = r"etcd3\.hosts\.\d .*\[Errno .*|bootstrap\.pg_hba  is not defined\.|"
    findings = checked.stdout.splitlines()
    assert [each for each in findings if not re.fullmatch(is_expected, each)] == []
    assert "Traceback" not in checked.stderr
