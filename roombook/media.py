"""Pictures in a bucket of an S3-compatible storage (MEDIA_BUCKET_URL)."""

from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from botocore.config import Config

# Signed addresses are valid for so long. Clients keep the results of a search for a while.
SIGNED_URL_SECONDS = 24 * 60 * 60


def build_s3_storage(bucket_url: SplitResult, media_url: str) -> dict[str, Any]:
    """An entry of Django's STORAGES for https://key:secret@endpoint/bucket?region=name.

    Without a key, boto3 looks for one in its usual places. If `media_url` has a host, pictures are
    read there without a signature.
    """
    public = urlsplit(media_url)
    endpoint = f"{bucket_url.scheme}://{bucket_url.netloc.rpartition('@')[2]}"
    region = bucket_url.query.removeprefix("region=") or None
    options: dict[str, Any] = {
        "bucket_name": bucket_url.path.strip("/"),
        "endpoint_url": endpoint,
        "region_name": region,
        "access_key": unquote(bucket_url.username or "") or None,
        "secret_key": unquote(bucket_url.password or "") or None,
        # Names are random and never used again, but a removed picture must vanish from caches soon.
        "file_overwrite": True,
        "object_parameters": {"CacheControl": "public, max-age=3600"},
        "querystring_auth": not public.netloc,
        "querystring_expire": SIGNED_URL_SECONDS,
        "client_config": Config(
            s3={"addressing_style": "path"},
            signature_version="s3v4",
            connect_timeout=3,
            read_timeout=10,
            retries={"total_max_attempts": 2},
        ),
    }
    if public.netloc:
        options |= {
            "custom_domain": f"{public.netloc}{public.path}".rstrip("/"),
            "url_protocol": f"{public.scheme}:",
        }
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}
