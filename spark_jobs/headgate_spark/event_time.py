"""Event times inside records that only the job can read: it registers a decoder, which alignment then uses.

    from headgate_spark import event_time

    event_time.register("rides", lambda value: fastavro.schemaless_reader(BytesIO(value), SCHEMA))

The resource says where in what the decoder returns the event time is: `eventTime: {column: $.pickup.time, format:
Avro}`. A decoder is called in the driver, on a thread of Headgate's, with the values of the few records that the
planner looks at; what executors read does not pass through it.
"""

from __future__ import annotations

from collections.abc import Callable

Decoder = Callable[[bytes], object]
"""From the value of a record to what `json.loads` would have made of it: mappings, sequences, numbers, texts. Moments
may be `datetime` too. Whatever it raises says that the record has no event time."""

_decoders: dict[str, Decoder] = {}


def register(source: str, decoder: Decoder) -> None:
    """Have the records of a source decoded by `decoder`, in all queries of this driver.

    Call it before a query of the source starts. `source` is the name that the resource calls it by. A decoder takes
    the place of the built-in one for JSON too: where values begin with the id of a schema, for one.
    """
    _decoders[source] = decoder


def registered(source: str) -> Decoder | None:
    """Return the decoder of a source; `None`: the job has registered none."""
    return _decoders.get(source)
