"""The partitions that a Kafka source reads, before Spark has told its offsets: by the options of the source.

Event times are asked once before the first planning, when nobody knows the partitions yet (`lookups`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def partitions_of(jvm: Any, admin: Any, options: Mapping[str, str], timeout_seconds: float) -> list[str]:
    """Return the partitions (`topic/0`) of a source with these options (keys in lower case), by an admin client.

    Raises what the client raises where a topic is not there, or may not be described.
    """
    if (assigned := options.get("assign")) is not None:
        return [f"{topic}/{n}" for topic, numbers in json.loads(assigned).items() for n in numbers]
    timeout = round(timeout_seconds), jvm.java.util.concurrent.TimeUnit.SECONDS
    if (subscribed := options.get("subscribe")) is not None:
        topics = [name.strip() for name in subscribed.split(",") if name.strip()]
    else:
        pattern = jvm.java.util.regex.Pattern.compile(options["subscribepattern"])
        names = admin.listTopics().names().get(*timeout)
        topics = [name for name in names if pattern.matcher(name).matches()]
    described = admin.describeTopics(java_list(jvm, topics)).allTopicNames().get(*timeout)
    counts = {topic: described.get(topic).partitions().size() for topic in topics}
    return [f"{topic}/{n}" for topic, count in counts.items() for n in range(count)]


def java_list(jvm: Any, texts: Iterable[str]) -> Any:
    """Return a `java.util.List` of texts."""
    made = jvm.java.util.ArrayList()
    for text in texts:
        made.add(text)
    return made
