"""Health checks for load balancers and `make run`, without authentication."""

import logging

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

logger = logging.getLogger(__name__)


@never_cache
def healthz(_: HttpRequest) -> JsonResponse:
    """200 if the database answers, 503 if not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.exception("The database does not answer")
        return JsonResponse({"status": "database unreachable"}, status=503)
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 if the database answers and has all migrations of this version, 503 if not."""
    health = healthz(request)
    if health.status_code != 200:
        return health
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        logger.exception("The database does not answer")
        return JsonResponse({"status": "database unreachable"}, status=503)
    if missing:
        return JsonResponse({"status": "migrations missing", "missing": len(missing)}, status=503)
    return JsonResponse({"status": "ok"})
