"""Certificates of servers on this machine."""

import subprocess
from pathlib import Path


def create_certificate(name: str, certificate: Path, key: Path) -> None:
    """A certificate for a name that signs itself, with a key of a kind that is made at once."""
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
        *("-keyout", str(key), "-out", str(certificate)),
    ]
    subprocess.run(command, check=True, capture_output=True)
