"""An engine whose dead messages and operations lie in the unified tables of a storage account.

It knows nothing of Bartleby: it reads its queue, writes what it could not do to `engineDlq` and what it did to
`engineHistory`, as the RFC of the tables has it. An office that is pointed at the account does the rest.

    pip install -r requirements.txt
    AZURE_STORAGE_CONNECTION_STRING=… python engine.py --once
"""

import json
import os
import sys
import time
import uuid
from datetime import datetime, timezone

from azure.core.exceptions import ResourceExistsError
from azure.data.tables import EdmType, EntityProperty, TableServiceClient
from azure.storage.queue import QueueServiceClient

CONNECTION = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
ENGINE = os.environ.get("ENGINE_NAME", "hmac")
QUEUE = os.environ.get("ENGINE_QUEUE", "hmac-rotation-queue")
DLQ_TABLE = os.environ.get("ENGINE_DLQ_TABLE", "engineDlq")
HISTORY_TABLE = os.environ.get("ENGINE_HISTORY_TABLE", "engineHistory")
MAX_ATTEMPTS = int(os.environ.get("ENGINE_MAX_ATTEMPTS", "3"))
# While this is set, rotations fail: the key vault is away, say.
IS_BROKEN = os.environ.get("ENGINE_BROKEN") == "1"

tables = TableServiceClient.from_connection_string(CONNECTION)
dlq_table = tables.create_table_if_not_exists(DLQ_TABLE)
history_table = tables.create_table_if_not_exists(HISTORY_TABLE)
queue_client = QueueServiceClient.from_connection_string(CONNECTION).get_queue_client(QUEUE)
try:
    queue_client.create_queue()
except ResourceExistsError:
    pass


def rotate(message: dict) -> dict:
    """The work of the engine."""
    if IS_BROKEN:
        raise RuntimeError(f"key vault of {message.get('instanceId')} does not answer")
    return {"rotated": message.get("instanceId")}


def timestamp() -> str:
    return datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%f")


def write_to_dlq(message: dict, instance_id: str, error: str, attempts: int, correlation_id: str, first: datetime) -> None:
    dlq_table.create_entity(
        {
            "PartitionKey": ENGINE,
            "RowKey": f"{instance_id}-{timestamp()}",
            "Engine": ENGINE,
            "InstanceId": instance_id,
            "OriginalQueue": QUEUE,
            "OriginalMessage": json.dumps(message),
            "ErrorMessage": error,
            "DequeueCount": attempts,
            "FirstFailureAtUtc": first,
            "LastFailureAtUtc": datetime.now(timezone.utc),
            "Status": "Pending",
            "CorrelationId": correlation_id,
        }
    )


def write_to_history(message, instance_id, output, error, started, correlation_id) -> None:
    duration_ms = int((time.monotonic() - started) * 1000)
    entry = {
        "PartitionKey": ENGINE,
        "RowKey": f"{correlation_id}-{timestamp()}",
        "Engine": ENGINE,
        "InstanceId": instance_id,
        "Operation": "rotate",
        "Status": "Succeeded" if error is None else "Failed",
        "DurationMs": EntityProperty(duration_ms, EdmType.INT64),
        "Input": json.dumps(message),
        "Output": json.dumps(output) if output else None,
        "Error": error,
        "CreatedAtUtc": datetime.now(timezone.utc),
        "CorrelationId": correlation_id,
    }
    history_table.create_entity({name: value for name, value in entry.items() if value is not None})


def work(received) -> None:
    message = json.loads(received.content)
    instance_id = message.get("instanceId", "publisher")
    correlation_id = message.get("correlationId") or str(uuid.uuid4())
    first = datetime.now(timezone.utc)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        started = time.monotonic()
        try:
            output = rotate(message)
        except Exception as error:
            write_to_history(message, instance_id, None, str(error), started, correlation_id)
            if attempt == MAX_ATTEMPTS:
                write_to_dlq(message, instance_id, str(error), attempt, correlation_id, first)
        else:
            write_to_history(message, instance_id, output, None, started, correlation_id)
            break
    queue_client.delete_message(received)


while True:
    for received in queue_client.receive_messages(messages_per_page=32, visibility_timeout=60):
        work(received)
    if "--once" in sys.argv:
        break
    time.sleep(1)
