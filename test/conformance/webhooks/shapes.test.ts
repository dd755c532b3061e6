/** What every answer of the webhook API looks like: its keys, their types, its content type and its end. */
import { beforeAll, describe, expect, it } from 'vitest'
import { brokers, expectRefusal, expectStatus, Lane } from './bed.ts'

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
const XID = expect.stringMatching(/^[0-9a-v]{19}[0g]$/)
const TEXT = expect.any(String)

brokers('answers', (broker) => {
  let push: Lane
  let pull: Lane
  let deadJob: string
  let other: Lane

  /** A channel with a message that was delivered, one that waits for its time, and a dead job. */
  beforeAll(async () => {
    push = await Lane.open(broker(), 'push')
    pull = await push.beside('pull')
    await push.broadcast('{"a":1}', {
      'X-Broker-Message-ID': 'm1',
      'Content-Type': 'application/json',
      'X-Broker-Metadata-Headers': 'traceparent, X-Foo',
      traceparent: '00-abc',
      'X-Foo': 'bar',
    })
    await push.broadcast('later', {
      'X-Broker-Message-ID': 's1',
      'X-Broker-Scheduled-For': broker().at(3600),
    })
    deadJob = await pull.jobOf('m1')
    await expectStatus(202, pull.move(deadJob, 'INFLIGHT'))
    await expectStatus(202, pull.move(deadJob, 'DEAD'))
    await push.delivered('m1')
    other = await Lane.open(broker(), 'pull')
  })

  const json = async (path: string, lane = pull) => (await broker().client.get(path, lane.tokens)).json()

  it('of a producer', async () => {
    expect(await json(`/producer/${push.producer}`)).toEqual({
      ID: push.producer,
      Name: push.producer,
      Token: push.producerToken,
      ChangedAt: TIME,
    })
  })

  it('of a channel', async () => {
    const path = push.channelPath
    expect(await json(path)).toEqual({
      ID: push.channel,
      Name: push.channel,
      Token: push.channelToken,
      ChangedAt: TIME,
      ConsumersURL: `${path}/consumers`,
      MessagesURL: `${path}/messages`,
      BroadcastURL: `${path}/broadcast`,
      MessagesStatusURL: `${path}/messages-status`,
    })
  })

  it('of a consumer', async () => {
    expect(await json(push.path)).toEqual({
      ID: push.consumer,
      Name: push.consumer,
      Token: push.consumerToken,
      ChangedAt: TIME,
      CallbackURL: `${broker().receiver.url}${push.hook}`,
      DeadLetterQueueURL: `${push.path}/dlq`,
      Type: 'push',
    })
  })

  it.each(['/producers', '/channels', 'consumers', 'messages'])('of the list %s', async (list) => {
    const path = list.startsWith('/') ? list : `${push.channelPath}/${list}`
    const page = await json(path)
    expect(page).toEqual({
      Result: expect.any(Array),
      Pages: {
        next: expect.stringContaining(`${path}?next=`),
        previous: expect.stringContaining(`${path}?previous=`),
      },
      Links: null,
    })
    expect(Object.keys(page)).toEqual(['Result', 'Pages', 'Links'])
  })

  it('of an empty list', async () => {
    const { text } = await broker().client.get(`${other.channelPath}/messages`)
    expect(text).toBe('{"Result":[],"Pages":{},"Links":null}\n')
    expect((await broker().client.get(`${other.channelPath}/scheduled-messages`)).json()).toEqual({
      pages: {},
      result: [],
    })
    expect((await broker().client.get(`${other.path}/dlq`)).text).toBe('{"DeadJobs":[],"Pages":{}}\n')
  })

  it('of a message', async () => {
    const message = await json(`${push.channelPath}/message/m1`)
    const job = (lane: Lane, Status: string) => ({
      ListenerEndpoint: `${broker().receiver.url}${lane.hook}`,
      ListenerName: lane.consumer,
      Status,
      StatusChangedAt: TIME,
    })
    expect(message).toEqual({
      ID: 'm1',
      Payload: '{"a":1}',
      ContentType: 'application/json',
      ProducedBy: push.producer,
      ReceivedAt: TIME,
      DispatchedAt: TIME,
      Status: 'DISPATCHED',
      // Newest first: in the order of consumers one of them is the newer.
      Jobs: expect.toSatisfy((jobs: unknown[]) => jobs.length === 2),
      Headers: { traceparent: '00-abc', 'X-Foo': 'bar' },
    })
    expect(message.Jobs).toEqual(
      expect.arrayContaining([
        expect.objectContaining(job(push, 'DELIVERED')),
        expect.objectContaining(job(pull, 'DEAD')),
      ]),
    )
  })

  it('of a scheduled message', async () => {
    expect(await json(`${push.channelPath}/scheduled-message/s1`)).toEqual({
      contentType: 'application/octet-stream',
      dispatchSchedule: TIME,
      dispatchedAt: null,
      headers: {},
      id: XID,
      messageId: 's1',
      payload: 'later',
      priority: 0,
      producedBy: push.producer,
      status: 'SCHEDULED',
    })
    expect(await json(`${push.channelPath}/scheduled-messages`)).toEqual({
      pages: { next: TEXT, previous: TEXT },
      result: [`${push.channelPath}/scheduled-message/s1`],
    })
  })

  it('of how many messages there are', async () => {
    expect(await json(`${push.channelPath}/messages-status`)).toEqual({
      counts: {
        DISPATCHED: { Count: 1, Links: { messages: `${push.channelPath}/messages?status=102` } },
        SCHEDULED_SCHEDULED: {
          Count: 1,
          Links: { messages: `${push.channelPath}/scheduled-messages?status=101` },
        },
      },
      next_scheduled_message_at: TIME,
    })
    expect(await json('/channel/none/messages-status')).toEqual({ counts: {} })
  })

  it('of jobs', async () => {
    await other.broadcast('x')
    expect(await json(`${other.path}/queued-jobs`, other)).toEqual({
      Result: [
        {
          ID: XID,
          Priority: 0,
          IncrementalTimeout: 0,
          Message: {
            MessageID: XID,
            Payload: 'x',
            Headers: {},
            ContentType: 'application/octet-stream',
          },
        },
      ],
    })
    const shared = {
      ListenerEndpoint: `${broker().receiver.url}${pull.hook}`,
      ListenerName: pull.consumer,
      Status: 'DEAD',
      StatusChangedAt: TIME,
      MessageURL: `${pull.channelPath}/message/m1`,
      JobRequeueURL: `${pull.path}/job/${deadJob}/requeue-dead-job`,
    }
    expect(await json(`${pull.path}/job/${deadJob}`)).toEqual({
      ...shared,
      ChannelURL: pull.channelPath,
      ConsumerURL: pull.path,
      ProducerURL: `/producer/${pull.producer}`,
    })
    expect(await json(`${pull.path}/dlq`)).toEqual({
      DeadJobs: [{ ...shared, ID: deadJob, RetryAttemptCount: 0, Exhausted: false, LastError: TEXT }],
      Pages: { next: TEXT, previous: TEXT },
    })
  })

  it('of what is counted', async () => {
    const status = await json('/job-status')
    const entry = (code: number, lane: Lane) => ({
      status: code,
      count: 1,
      oldestItemTimestamp: TIME,
      newestItemTimestamp: TIME,
      consumerId: lane.consumer,
      consumerName: lane.consumer,
    })
    const consumers = status[push.channel]
    expect(Object.values(consumers ?? {})).toEqual(
      expect.arrayContaining([[entry(1003, push)], [entry(1004, pull)]]),
    )
    for (const internalId of Object.keys(consumers ?? {})) expect(internalId).toEqual(XID)
    expect(await json('/dlq-status')).toEqual({
      consumers: [
        {
          channelId: pull.channel,
          channelName: pull.channel,
          consumerId: pull.consumer,
          consumerName: pull.consumer,
          deadCount: 1,
        },
      ],
    })
  })

  it('of the state of the server', async () => {
    expect(await json('/_status')).toEqual({
      SeedData: {
        DataHash: expect.stringMatching(/^[0-9a-f]{64}$/),
        Producers: [],
        Channels: [],
        Consumers: [],
      },
      AppStatus: 3,
    })
  })

  it('of metrics', async () => {
    const { status, headers, text } = await broker().client.get('/metrics')
    expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    const sample = `dead_job_count{channel="${pull.channel}",consumer="${pull.consumer}"} 1`
    expect(text).toContain(
      `# HELP dead_job_count Number of dead jobs per consumer\n# TYPE dead_job_count gauge\n${sample}\n`,
    )
    expect(text).toContain('# HELP queued_job_count The current number of jobs in the queue\n')
    expect(text).toMatch(/^queued_job_count 0$/m)
    for (const name of [
      'bartleby_delivery_attempts_total',
      'bartleby_delivery_duration_seconds',
      'bartleby_oldest_dead_job_age_seconds',
      'bartleby_dlq_unfolded_rows',
      'bartleby_dlq_last_fold_timestamp_seconds',
    ]) {
      expect(text).toContain(`# TYPE ${name} `)
    }
    expect(text).toMatch(
      new RegExp(
        `^bartleby_delivery_attempts_total\\{channel="${push.channel}",consumer="${push.consumer}",outcome="success"\\} 1$`,
        'm',
      ),
    )
  })

  describe('without a body', () => {
    it('say that it is empty', async () => {
      const created = await push.post('again')
      expect([created.status, created.headers['content-length'], created.text]).toEqual([201, '0', ''])
      const moved = await pull.move(deadJob, 'DEAD')
      expect([moved.status, moved.headers['content-length'], moved.text]).toEqual([202, '0', ''])
    })

    it('have no length when nothing can have one', async () => {
      const lane = await Lane.open(broker(), 'push')
      const { headers } = await broker().client.get(lane.path)
      const gone = await broker().client.delete(lane.path, {
        'If-Unmodified-Since': headers['last-modified'] ?? '',
      })
      expect([gone.status, gone.text, gone.headers['content-type']]).toEqual([204, '', undefined])
    })
  })

  it('show no more than that something failed when the store fails', async () => {
    await broker().place.refuseWrites()
    try {
      await expectRefusal(500, 'internal error', broker().client.put('/producer/unwritten', {}))
      await expectRefusal(500, 'internal error', push.post('unwritten'))
      await expectStatus(200, broker().client.get('/producers'))
    } finally {
      await broker().place.acceptWrites()
    }
  })
})
