"""An engine in Python, with nothing but the standard library: leases messages of a queue, works on them, tells the history
what came of each, and says of what cannot be done why it is dead. `--once` ends when the queue is empty."""
import base64, datetime, json, os, sys, time, traceback, urllib.error, urllib.request

SERVER = os.environ.get("BARTLEBY_URL", "http://127.0.0.1:1853")
TOKEN = os.environ.get("BARTLEBY_TOKEN")
ENGINE, OPERATION, QUEUE = "hmac", "rotate", "hmac-rotation-queue"
MAX_ATTEMPTS = 3
DELAY_SECONDS = float(os.environ.get("ENGINE_DELAY_SECONDS", "10"))


def call(path, body):
    """Posts JSON; gives the status and the answer. Only a server that does not answer at all is an exception."""
    headers = {"content-type": "application/json", "accept": "application/json"}
    if TOKEN:
        headers["authorization"] = "Bearer " + TOKEN
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=90) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def insist(path, body):
    status, answer = call(path, body)
    if status >= 300:
        raise RuntimeError(f"{path} answered {status}: {answer}")
    return answer


def rotate(message):
    """The work itself: yours."""
    if "instanceId" not in message:
        raise KeyError("instanceId")
    return {"rotated": message["instanceId"]}


def handle(item, partition):
    started = time.monotonic()
    place = {"queue_name": QUEUE, "partition": partition}
    run = {"engine": ENGINE, "operation": OPERATION, "sourceId": f"{item['id']}/{item['attempts']}"}
    try:
        message = json.loads(base64.b64decode(item["bytes"]))
        run |= {"status": "Succeeded", "input": message, "output": rotate(message)}
    except Exception as error:
        run |= {"status": "Failed", "error": f"{type(error).__name__}: {error}"}
        failed = {"error_class": type(error).__name__, "error_message": str(error), "error_stack": traceback.format_exc()}
    run["durationMs"] = round((time.monotonic() - started) * 1000)
    # Once for each delivery: the source id makes a repetition harmless.
    insist("/api/history", run)
    if run["status"] == "Succeeded":
        insist("/v1/queue.complete", place | {"request_timeout": "5s", "ids": [item["id"]]})
    elif item["attempts"] >= MAX_ATTEMPTS:
        insist("/v1/queue.retry", place | {"items": [{"id": item["id"], "dead": True, **failed}]})
    else:
        later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=DELAY_SECONDS * 2 ** item["attempts"])
        retry = {"id": item["id"], "retry_at": later.isoformat().replace("+00:00", "Z"), **failed}
        insist("/v1/queue.retry", place | {"items": [retry]})


def main():
    once = "--once" in sys.argv
    settings = {"lease_timeout": "1m", "expire_timeout": "24h", "requested_partitions": 1}
    status, answer = call("/v1/queues.create", {"queue_name": QUEUE, **settings})
    if status >= 300 and "already exists" not in answer["message"]:
        raise RuntimeError(answer["message"])
    ask = {"queue_name": QUEUE, "client_id": f"python-{os.getpid()}", "batch_size": 10}
    while True:
        # A long poll: answered as soon as there is something, and otherwise refused as "try again".
        status, batch = call("/v1/queue.lease", ask | {"request_timeout": "1s" if once else "1m"})
        if status == 454 and once:
            return
        if status == 454:
            continue
        if status >= 300:
            raise RuntimeError(batch["message"])
        for item in batch["items"]:
            handle(item, batch.get("partition", 0))


main()
