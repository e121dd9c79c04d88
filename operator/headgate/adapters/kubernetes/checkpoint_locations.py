"""Where the queries of an application write their checkpoints, as far as its properties tell.

`spark.sql.streaming.checkpointLocation` is a folder for all checkpoints and none by itself: below it Spark makes one
for each query, of the query's name (`ResolveWriteToStream`: `new Path(conf, queryName)`), or of a random one where
the query has no name. A query whose job gives it the option `checkpointLocation` is not seen here.

Whoever is told that two locations are one must be able to rely on it: a driver is kept from starting for that. So a
location counts only where it is certain which one it is. A path on a pod's own disk is nobody else's; one on a volume
is that of the volume; one in a file system that the image's own configuration chooses is not known.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Final

from headgate.adapters.kubernetes.customized import volumes_of
from headgate.api.property_rules import ON_DEMAND

CHECKPOINT_PROPERTY: Final = "spark.sql.streaming.checkpointLocation"

_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
"""Schemes that are other ways to the same objects."""
_WITH_CONTAINER: Final = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_DEFAULT_PORTS: Final = {"hdfs": ":8020"}
_ON_THE_POD: Final = frozenset({"file", "local"})
_DEFAULT_FILE_SYSTEM: Final = "spark.hadoop.fs.defaultFS"


def checkpoint_locations(conf: Mapping[str, str], queries: Iterable[str]) -> tuple[str, ...]:
    """Return where queries of these names write, in a form in which two places that are one are equal.

    Empty where the properties do not tell.
    """
    folder = _folder(conf)
    return () if folder is None else tuple(posixpath.join(folder, name) for name in queries)


def _folder(conf: Mapping[str, str]) -> str | None:
    named = conf.get(CHECKPOINT_PROPERTY, "").strip()  # Spark trims what it reads of its properties file
    if not named:
        return None
    scheme, authority, path = _parts(named)
    if scheme is None:
        scheme, authority, _ = _parts(conf.get(_DEFAULT_FILE_SYSTEM, "file:///").strip())
    if scheme is None or not path.startswith("/"):
        return None
    path = _tidy(path)
    if scheme in _ON_THE_POD:
        return _on_a_volume(path, conf)
    return None if not authority else f"{scheme}://{authority}{path}{_endpoint(scheme, authority, conf)}"


def _parts(location: str) -> tuple[str | None, str, str]:
    """Return scheme, authority and path, the first two in their usual form, without a login.

    What is returned is written on the pod and may be told in a status. An Azure address has its container before the
    `@`.
    """
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", location, re.DOTALL)
    if found is None:
        return None, "", location
    scheme, authority, path = found[1].lower(), found[2] or "", found[3] or "/"
    if scheme not in _WITH_CONTAINER:
        authority = authority.rpartition("@")[2]
    if not re.fullmatch(r"(\[.*\]|[^:]*)(:\d*)?", authority):
        return None, "", location  # a login with a slash in it, of which the rest would be taken for a path
    if (port := _DEFAULT_PORTS.get(scheme)) is not None:
        authority = authority.lower().removesuffix(port)
    return _ALIASES.get(scheme, scheme), authority, path


def _tidy(path: str) -> str:
    """Return the path as Hadoop's `Path` has it: no doubled or last slash, no `.` and `..`."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _endpoint(scheme: str, bucket: str, conf: Mapping[str, str]) -> str:
    """Return what tells buckets of one name apart that are in stores of several owners."""
    if scheme != "s3":
        return ""
    of_bucket = conf.get(f"spark.hadoop.fs.s3a.bucket.{bucket}.endpoint")
    endpoint = of_bucket or conf.get("spark.hadoop.fs.s3a.endpoint")
    return "" if endpoint is None else f"@{endpoint.strip().rstrip('/')}"


def _on_a_volume(path: str, conf: Mapping[str, str]) -> str | None:
    """Return the place on the volume that is mounted there; `None` where others cannot have that volume."""
    mounted = [
        (at, volume)
        for volume in volumes_of(conf)
        if (at := _tidy(volume.mount.get("path", ""))) != "/" and f"{path}/".startswith(f"{at}/")
    ]
    if not mounted:
        return None
    at, volume = max(mounted, key=lambda one: len(one[0]))
    match volume.type, volume.options:
        case "persistentVolumeClaim", {"claimName": name} if name != ON_DEMAND:
            root = f"volume claim {name}"
        case "nfs", {"server": server, "path": folder}:
            root = f"nfs {server.lower()}:{folder}"
        case _:
            return None
    return posixpath.normpath(f"{root}/{volume.mount.get('subPath', '')}/{path[len(at) :]}")
