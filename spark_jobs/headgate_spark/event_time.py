"""Event times inside records that only the job can read: it registers a decoder, which alignment then uses.

    from headgate_spark import event_time

    event_time.register("rides", lambda value: fastavro.schemaless_reader(BytesIO(value), SCHEMA))

The resource says where in what the decoder returns the event time is: `eventTime: {column: $.pickup.time, format:
Avro}`. Of a change stream (`backlog: {snapshot: Debezium}`) it returns the envelope. A decoder is called in the
driver, on a thread of Headgate's, with the values of the few records that the planner looks at; what executors read
does not pass through it. That thread is in the planner's process, so a decoder travels there as what is sent to
executors does, by cloudpickle: what it imports must be there too, which it is for modules beside the script and for
installed ones.

A job that does not import Headgate names its decoder by a setting instead: `headgate.eventTime.decoder`, see
`headgate_spark.engine.decoders`. Such a one is of its query alone, and takes the place of one that is registered.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable

Decoder = Callable[[bytes], object]
"""From the value of a record to what `json.loads` would have made of it: mappings, sequences, numbers, texts. Moments
may be `datetime` too. Whatever it raises says that the record has no event time."""

Send = Callable[[str, str, str], None]
"""Hands a source, its decoder as text, and the job's module path as JSON to the planner's process. What it raises
comes out of `register`."""

_decoders: dict[str, Decoder] = {}
_send: Send | None = None


def register(source: str, decoder: Decoder) -> None:
    """Have the records of a source decoded by `decoder`, in all queries of this driver.

    Call it before a query of the source starts, and, without `headgate-run`, after the session was made. `source` is
    the name that the resource calls it by. A decoder takes the place of the built-in one for JSON too: where values
    begin with the id of a schema, for one. Raises RuntimeError where the planner's process cannot load it.
    """
    _decoders[source] = decoder
    send = _send or _by_the_jvm()
    if send is not None:
        from pyspark import cloudpickle

        send(source, base64.b64encode(cloudpickle.dumps(decoder)).decode(), json.dumps(sys.path))


def registered(source: str) -> Decoder | None:
    """Return the decoder of a source; `None`: the job has registered none."""
    return _decoders.get(source)


def send_by(send: Send | None) -> None:
    """Hand decoders to the planner's process by `send` from now on; `headgate-run` calls it."""
    global _send  # noqa: PLW0603 -- a process runs one job
    _send = send


def take(source: str, decoder: str, path: str) -> None:
    """Register what a job has sent: what the planner's process calls. Raises what the import of a module raises."""
    sys.path += [entry for entry in json.loads(path) if entry not in sys.path]
    from pyspark import cloudpickle  # where the job has it

    _decoders[source] = cloudpickle.loads(base64.b64decode(decoder))


def _by_the_jvm() -> Send | None:
    """Return the way through the driver's JVM; `None`: there is none, or it has no planner's process."""
    context = sys.modules["pyspark"].SparkContext._active_spark_context if "pyspark" in sys.modules else None
    if context is None:
        return None
    from py4j.java_gateway import JavaPackage

    shim = context._jvm.dev.headgate.spark.Shim
    return None if isinstance(shim, JavaPackage) else shim.decoder
