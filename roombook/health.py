"""Health checks for load balancers and `make run`, without authentication."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils.log import log_response
from django.views.decorators.cache import never_cache

from roombook.startup import find_missing_migrations


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200 if the database answers, 503 if not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return respond_unreachable(request, error)
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 if the database answers and has all migrations of this version, 503 if not."""
    health = healthz(request)
    if health.status_code != 200:
        return health
    try:
        missing = find_missing_migrations()
    except DatabaseError as error:
        return respond_unreachable(request, error)
    if missing:
        return JsonResponse({"status": "migrations missing", "missing": len(missing)}, status=503)
    return JsonResponse({"status": "ok"})


def respond_unreachable(request: HttpRequest, error: DatabaseError) -> JsonResponse:
    response = JsonResponse({"status": "database unreachable"}, status=503)
    log_response("Health check", response=response, request=request, exception=error)
    return response
