"""Consumer groups of a broker, as Kafka's own tools see them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from support.kafka import Broker, client_settings
from support.waiting import wait_until

REQUEST_SECONDS = 120.0


def offsets(kafka: Broker, group: str) -> dict[int, int]:
    """Return the group's offset of each partition, for a group of one topic."""

    def answered() -> tuple[dict[int, int]] | None:
        asked = kafka.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        (answer,) = asked.values()
        try:
            found = answer.result(REQUEST_SECONDS).topic_partitions
        except KafkaException:  # the first group of a broker makes it load its coordinator
            return None
        return ({split.partition: split.offset for split in found},)

    return wait_until(answered, f"the offsets of {group}")[0]


def lag(kafka: Broker, topic: str, group: str) -> dict[int, int]:
    """Return the records of each partition that the group has before it."""
    latest, committed = kafka.latest(topic), offsets(kafka, group)
    return {partition: latest[partition] - offset for partition, offset in committed.items()}


@contextmanager
def consumer(kafka: Broker, topic: str, group: str) -> Iterator[None]:
    """Be an active member of a group while the block runs."""
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    member = Consumer({**client_settings(kafka.bootstrap), **settings})
    member.subscribe([topic])
    try:
        wait_until(lambda: member.poll(0.1) is not None or member.assignment(), "the consumer's partitions")
        yield
    finally:
        member.close()


def commit(kafka: Broker, topic: str, group: str, offset: int) -> None:
    """Read partition 0 of a topic up to an offset as a member of a group, and leave it."""
    member = Consumer({**client_settings(kafka.bootstrap), "group.id": group, "enable.auto.commit": False})
    member.assign([TopicPartition(topic, 0, 0)])
    member.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    member.close()
