"""Spark's Kafka source, a package of its own: what to say when a job uses it and it is missing or does not fit.

Spark then names its online guide, or a method that does not exist. Which package goes with the Spark that is
installed is known here, so it is said. Asked by `launch.script` about whatever has ended a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MODULE = "org.apache.spark:spark-sql-kafka-0-10_2.13"

STAND_INS = {
    "4.3": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.0",
    ),
}
"""Jars that run on a version of Spark whose own are not in every repository; the project's tests use them."""

_MISSING = re.compile(r"Failed to find data source: kafka\b", re.IGNORECASE)
_UNFIT = re.compile(r"^.*\b(?:NoSuchMethodError|NoClassDefFoundError|AbstractMethodError)\b.*$", re.MULTILINE)
_CONNECTOR = "sql.kafka010."


def remedy(error: BaseException) -> str | None:
    """Return what is wrong with the Kafka source if that is what ended the script, and the lines that mend it."""
    text = str(error)
    if not (_MISSING.search(text) or _CONNECTOR in text):
        return None
    from pyspark.version import __version__

    return advice(text, __version__)


def advice(failure: str, spark: str) -> str | None:
    """Return the same for the text of a failure; `None`: the Kafka source is not to blame."""
    unfit = _UNFIT.search(failure)
    if _MISSING.search(failure):
        wrong = f'the job uses format("kafka"), which is not part of Spark {spark} but a package of its own'
    elif unfit is not None and _CONNECTOR in failure:
        wrong = f"the Kafka source on the class path is not the one of Spark {spark} ({unfit[0].strip()})"
    else:
        return None
    return "\n".join([f"{wrong}; add to the command", *_lines(spark)])


def _lines(spark: str) -> Iterator[str]:
    yield f"  --conf spark.jars.packages={MODULE}:{spark}"
    stand_ins = STAND_INS.get(".".join(spark.split(".")[:2]))
    if stand_ins is not None:
        yield f"or, where your repository does not have that version, the files of {', '.join(stand_ins)}:"
        yield f"  --conf spark.jars={','.join(file_name(jar) for jar in stand_ins)}"


def file_name(coordinates: str) -> str:
    """Return the name of the file that holds `group:artifact:version`."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"
