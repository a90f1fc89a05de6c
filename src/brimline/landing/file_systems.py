"""Folders and URIs as pyarrow opens them. An object store that fails now and then is asked again."""

import os
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from brimline.model.secrets import is_uri

OBJECT_STORES = ("s3", "gcs", "abfs")
_ATTEMPTS = 10
"""As delta-rs. pyarrow's own three are not enough for a store that fails one request in ten."""
_CONNECT_SECONDS, _REQUEST_SECONDS = 10.0, 60.0
_FETCHED_WHOLE = 256 << 20
_NO_ROOM = "Failed to flush response stream"
_S3_OPTIONS = ("endpoint_override", "region", "scheme")
_REGION, _ENDPOINT = ("AWS_REGION", "AWS_DEFAULT_REGION"), ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def file_system(place: str) -> tuple[fs.FileSystem, str]:
    """Of a folder or a URI, and the path in it. Raises ``OSError``, ``ValueError`` or pyarrow's own."""
    if not is_uri(place):
        return fs.LocalFileSystem(), str(Path(place).absolute())
    parts = urlsplit(place)
    told = dict(parse_qsl(parts.query))
    if parts.scheme == "s3" and "@" not in parts.netloc and told.keys() <= set(_S3_OPTIONS):
        endpoint, region = told.get("endpoint_override") or _told(_ENDPOINT), told.get("region") or _told(_REGION)
        return _s3(parts.netloc, endpoint, region, told.get("scheme")), unquote(f"{parts.netloc}{parts.path}")
    files, path = fs.FileSystem.from_uri(place)
    return files, path


def opened_file(path: str) -> pa.NativeFile:
    """A landed file, by its path or URI.

    It is fetched whole, unless it is huge: with one request, and a store that fails is told from a file that is
    damaged, because it fails here.
    """
    if is_uri(path):
        files, below = file_system(path)
        file = files.open_input_file(below)
    else:
        file = pa.OSFile(path)  # not mapped: a file that somebody cuts short meanwhile would end the process
    if file.size() > _FETCHED_WHOLE:
        return file
    with file:
        return pa.BufferReader(_whole(file))


def _whole(file: pa.NativeFile) -> bytes:
    """A refusal longer than the file does not fit where the file was to go: then AWS's client does not ask again."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return bytes(file.read_at(file.size(), 0))
        except OSError as error:
            if _NO_ROOM not in str(error):
                raise
    return bytes(file.read_at(file.size(), 0))


@cache  # a task opens thousands of files of one place
def _s3(bucket: str, endpoint: str | None, region: str | None, scheme: str | None) -> fs.FileSystem:
    """Credentials are the environment's, as for every program that asks S3."""
    if region is None and endpoint is None:
        region = fs.resolve_s3_region(bucket)
    retries = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        region=region,
        scheme=scheme,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=retries,
        # A small file is one request, which may be repeated; an upload in parts that was completed may not
        allow_delayed_open=True,
    )


def _told(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)
