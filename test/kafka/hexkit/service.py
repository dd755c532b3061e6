"""A service built with hexkit that says on standard output what it consumed, and fails at events whose key begins with `bad`."""

import asyncio
import json
import os

from hexkit.protocols.eventsub import EventSubscriberProtocol
from hexkit.providers.akafka import KafkaConfig, KafkaEventPublisher, KafkaEventSubscriber


class Witness(EventSubscriberProtocol):
    topics_of_interest = os.environ["TOPICS"].split(",")
    types_of_interest = ["created", "changed"]

    # Generations before 6 know no ids of events.
    async def _consume_validated(self, *, payload, type_, topic, key, event_id=None):
        told = {"topic": topic, "type": type_, "key": key, "id": str(event_id), "payload": json.dumps(payload)}
        print(json.dumps(told), flush=True)
        if key.startswith("bad"):
            raise ValueError("the key is bad")


async def main():
    config = KafkaConfig(
        service_name=os.environ["SERVICE"],
        service_instance_id="1",
        kafka_servers=[os.environ["SERVERS"]],
        kafka_enable_dlq=True,
        kafka_dlq_topic=os.environ["DLQ_TOPIC"],
    )
    async with (
        KafkaEventPublisher.construct(config=config) as publisher,
        KafkaEventSubscriber.construct(config=config, translator=Witness(), dlq_publisher=publisher) as subscriber,
    ):
        await subscriber.run()


asyncio.run(main())
