/**
 * Rows as servers of earlier schema versions left them, in all parts that a version has: queues with items, letters in every status with
 * their history and counts, webhooks, Kafka, redrives, and runs that are under way. Some counts are not folded yet.
 *
 * Versions 3 and 4 made tables for letters that nobody filled before version 5 moved dead items there.
 */
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Xids } from '../../src/core/xid.ts'
import { SEND, STATE } from '../../src/sources/kafka/event.ts'
import { STORED_COUNTS } from '../../src/sources/webhooks/numbers/counts.ts'
import { JOB } from '../../src/sources/webhooks/webhook.ts'
import type { Database } from '../../src/store/database.ts'
import { addLetters, lettersOf } from './old-letters.ts'
import {
  type Add,
  at,
  FIRST_SECOND,
  insertion,
  itemId,
  LATER,
  type Made,
  PAYLOAD,
  PREFIX,
  PUBLISHED,
  type Row,
  SENDS,
  type Since,
} from './old-rows.ts'

const TERMS = '{"rate":5,"canary":null,"stopRule":null,"order":"key"}'
const NUMBERS =
  '{"matched":2,"eligible":2,"inFlight":0,"noDestination":0,"orderBlocked":0,"duplicate":0,"invalid":0}'
const FACTS = {
  ...{ service: 'wps', originalTopic: 'orders', type: '', correlationId: null, mintedCorrelationId: null },
  ...{ originalEventId: null, readFrom: null, family: null, attemptsReported: null, valueForm: 'json' },
  exception: { class: null, message: null },
  origin: { topic: null, partition: null, offset: null },
  ...{ reasons: [], warnings: [] },
}

/** Fills a store that is at a version. */
export async function fillOldStore(db: Database, version: number): Promise<void> {
  const clock = new TestClock()
  clock.freeze(instant(BigInt(at(1))))
  const xids = new Xids(clock)
  const several = (many: number) => Array.from({ length: many }, () => xids.next())
  const made: Made = { jobs: several(5), redrives: several(2), runs: several(3) }
  const isPostgres = db.dialect === 'postgres'
  const since: Since = (first, value) => (version >= first ? value : undefined)
  const rows: string[] = []
  const add = (table: string, ...given: readonly Row[]): void => {
    for (const row of given) rows.push(insertion(isPostgres, table, row))
  }
  const count = (sequence: string, row: string, last: number): void => {
    rows.push(
      isPostgres
        ? `SELECT setval('bartleby.${sequence}', ${last})`
        : `UPDATE serials SET last = ${last} WHERE name = '${row}'`,
    )
  }
  const letters = lettersOf(version, since, made)

  add('locks', { name: 'of long ago', owner: 'somebody', deadline: 1 })
  if (version >= 2) {
    count('serials', 'items', 2_000)
    addQueues(add, version, since, isPostgres)
  }
  if (version >= 5) {
    count('letter_ids', 'letters', 100)
    addLetters(add, version, letters, since, isPostgres, made)
  }
  if (version >= 6) {
    addWebhooks(add, version, made, isPostgres)
    rows.push(
      isPostgres ? `SELECT setval('bartleby.webhook_numbers', 2)` : 'UPDATE webhook_numbers SET last = 2',
    )
  }
  if (version >= 7) {
    count('kafka_intake', 'kafka_intake', 2)
    addKafka(add)
  }
  if (version >= 9) add('secrets', { name: 'of a test', value: Buffer.alloc(32, 7) })
  if (version >= 11) addRedrives(add, version, since, made)
  if (version >= 12) add('engine_queues', { queue: 'hmac-queue', engine: 'hmac' })
  if (version >= 15) addRuns(add, made)
  await db.transaction('test.fill', (tx) => db.script(tx, rows.join(';\n')))
}

function addQueues(add: Add, version: number, since: Since, isPostgres: boolean): void {
  const settings = { namespace: '_system', created_at: at(0), updated_at: at(0), requested_partitions: 1 }
  const times = { lease_timeout_ns: 60_000_000_000, expire_timeout_ns: 3_600_000_000_000 }
  const queue = (id: number, name: string, more: Row = {}): Row => ({
    ...{ id, name, ...settings, ...times, max_attempts: 3, on_death: since(12, 'letter'), ...more },
  })
  const holds = since(5, true)
  add(
    'queues',
    queue(101, 'orders', { dead_queue: 'orders-dead' }),
    queue(102, 'orders-dead', holds === undefined ? {} : { holds_letters: isPostgres ? holds : 1 }),
    queue(103, 'ticks'),
  )
  for (const part of [101, 102, 103])
    add('partitions', {
      part,
      queue_id: part,
      number: 0,
      id_prefix: part === 101 ? PREFIX : `2Y${part}EaBcDeFgHiJkL`.padEnd(18, 'x'),
    })
  const item = (id: number, part: number, more: Row = {}): Row => ({
    ...{ id, part, created_at: at(1), attempts: 0, shelf: 0, leased: 0, payload: PAYLOAD, ...more },
  })
  add('items', item(1, 101))
  add('items', item(2, 101, { leased: 1, lease_deadline: LATER, attempts: 1 }))
  add('lease_batches', { part: 101, due_at: LATER, deadline: LATER, runs: '{2,2}' })
  add('items', item(3, 101, { shelf: 1, enqueue_at: LATER }))
  if (version >= 5) add('items', item(4, 101, { case_id: 3 }))
  else
    for (const [id, reason] of [
      [11, 'attempts'],
      [12, 'rejected'],
    ] as const)
      add('items', item(id, 102, { ...deathOf(id, reason), created_at: at(id === 11 ? 1 : 22) }))
  add('items', item(21, 103))
  const none = {
    ready: 0,
    leased: 0,
    scheduled: 0,
    held: 0,
    dead: 0,
    created_us: 0,
    deadline_s: 0,
    deadline_us: 0,
  }
  const ready = version >= 5 ? 2 : 1
  add(
    'partition_totals',
    {
      ...{ ...none, part: 101, ready, leased: 1, scheduled: 1, created_s: (ready + 1) * (FIRST_SECOND + 1) },
      deadline_s: LATER / 1_000_000,
    },
    { ...none, part: 102, ready: 2, dead: 2, created_s: 2 * FIRST_SECOND + 23 },
  )
  add(isPostgres ? 'partition_deltas' : 'partition_totals', {
    ...{ ...none, part: 103, ready: 1, created_s: FIRST_SECOND + 1 },
  })
}

/** A letter that is still an item. */
const deathOf = (id: number, reason: string): Row => ({
  ...{ died_at: at(id), death_reason: reason, death_queue: 'orders', death_partition: 0, death_attempts: 3 },
  ...{ death_created_at: at(0), source_id: Buffer.from(itemId(1_000 + id)) },
})

function addWebhooks(add: Add, version: number, { jobs, runs }: Made, isPostgres: boolean): void {
  const made = { created_at: at(1), updated_at: at(1) }
  const named = { name: 'n', token: 't', ...made }
  add('webhook_producers', { id: 'p1', producer_id: 'shop', ...named })
  add('webhook_channels', { id: 'c1', number: 1, channel_id: 'orders', ...named })
  add('webhook_consumers', {
    ...{ id: 'k1', number: 2, channel: 1, consumer_id: 'billing', callback_url: '', pulls: 1, ...named },
  })
  const message = (number: number, more: Row): Row => ({
    ...{
      id: `m${number}`,
      channel: 1,
      message_id: `m-${number}`,
      producer: 'p1',
      created_at: at(1),
      priority: 0,
    },
    ...{ content_type: 'text/plain', headers: '[]', payload: PAYLOAD, ...more },
  })
  const states: readonly (readonly [number, Row])[] = [
    [JOB.later, { due_at: LATER }],
    [JOB.ready, {}],
    [JOB.inFlight, { due_at: LATER, claim: 'a claim' }],
    [JOB.delivered, {}],
    [JOB.dead, { letter: 10, exhausted: 1 }],
  ]
  for (const [i, [state, more]] of states.entries()) {
    const id = String(jobs[i])
    add('webhook_messages', message(i, { received_at: at(1), first_job: id, jobs: 1 }))
    add('webhook_jobs', {
      ...{
        id,
        message: `m${i}`,
        consumer: 2,
        state,
        created_at: at(1),
        changed_at: at(2),
        priority: 0,
        attempts: 1,
      },
      ...more,
    })
  }
  add('webhook_messages', message(9, { scheduled_for: LATER, next_try_at: LATER }))
  const total = (subject: number, tally: number, amount: number): Row => ({ subject, tally, amount })
  add('webhook_totals', total(2, STORED_COUNTS.queued, 2), total(2, STORED_COUNTS.inFlight, 1))
  add('webhook_totals', total(1, STORED_COUNTS.dispatched, 5), total(1, STORED_COUNTS.scheduled, 1))
  add(isPostgres ? 'webhook_deltas' : 'webhook_totals', total(2, STORED_COUNTS.delivered, 1))
  if (version >= 15) return
  const run = { consumer: 2, actor: 'nell', started_at: at(3), expected: 10, done: 4, ...RUN_PLACE }
  add('webhook_bulk_runs', {
    ...run,
    id: String(runs[0]),
    kind: 'requeue',
    owner: 'gone',
    owned_until: at(4),
  })
  add('webhook_bulk_runs', { ...run, id: String(runs[1]), kind: 'purge', finished_at: at(5) })
}

/** All of them were looked at: nothing that is dead now was dead then. */
const RUN_PLACE = { last_created_at: 1, last_job: 'j0', next_created_at: 1, next_job: 'j0' }

function addKafka(add: Add): void {
  add('kafka_services', { service: 'wps' })
  add('kafka_partitions', {
    ...{ topic: 'wps_dlq', partition: 0, order_ts: 1, next_offset: 2, received: 2 },
    ...{ duplicates: 0, created: 2, reopened: 0, gaps: 0 },
  })
  for (const [i, dlqId] of SENDS.events.entries()) {
    const place = { topic: 'wps_dlq', partition: 0, record_offset: i, dlq_id: dlqId, letter_id: 11 + i }
    add('kafka_records', { ...place, fingerprint: Buffer.from([i]) })
    add('kafka_events', {
      ...{ ...place, order_ts: 1, intake: i + 1, record_ts: 1, attempts: 1, value_null: 0 },
      ...{ state: i === 0 ? STATE.pending : STATE.published, event_id: i === 0 ? null : PUBLISHED },
      ...{ service: 'wps', original_topic: 'orders', facts: Buffer.from(JSON.stringify(FACTS)) },
    })
  }
  add('kafka_sends', {
    ...{ event_id: PUBLISHED, letter_id: 12, made_at: at(19), settled_at: at(20), published_offset: 0 },
    ...{ published_partition: 0, resends: 0, outcome: SEND.published, reopened: 0, value_kept: 1 },
    ...{ target: 'orders', digest: '', actor: 'nell', headers: Buffer.alloc(0) },
  })
}

/** One that is done and sent two letters, and one that is paused and has none. */
function addRedrives(add: Add, version: number, since: Since, { redrives: [done, paused] }: Made): void {
  const redrive: Row = {
    ...{ action: 'retry', selection: '{"by":"filter","filter":{}}', numbers: NUMBERS, terms: TERMS },
    ...{ planned_by: 'nell', planned_at: at(18), valid_until: at(40), started_by: 'bob', started_at: at(19) },
    ...(version < 16 && { resumed: 1 }),
  }
  add('redrives', { ...redrive, id: String(done), state: 'done', ended_at: at(22) })
  add('redrives', { ...redrive, id: String(paused), state: 'paused', resumes_as: 'running', note: 'lunch' })
  add('redrive_lanes', {
    ...{ redrive: 1, lane: 0, source: 'queues', engine: 'queues', destination: 'orders' },
    ...{ planned: 2, sent: 2, at_captured: at(4), at_letter: 4 },
  })
  for (const letter of [3, 4])
    add('redrive_letters', { redrive: 1, lane: 0, captured_at: at(letter), letter, version: 1 })
  add('redrive_outcomes', { redrive: 1, confirmed: 1, returned: 0 })
  if (since(16, true) === undefined) return
  const run = {
    kind: 'redrive',
    about: 'retry of letters',
    subject: '{}',
    place: 'null',
    actor: 'bob',
    started_at: at(19),
  }
  add('runs', { ...run, id: String(done), state: 'done', ended_at: at(22), expected: 2, done: 2 })
  add('runs', { ...run, id: String(paused), state: 'paused', note: 'lunch', expected: 0, rate: 5 })
}

/** A requeue and an expiry whose server is gone; neither finds anything more to do. */
function addRuns(add: Add, { runs }: Made): void {
  const run = {
    actor: 'nell',
    state: 'running',
    started_at: at(3),
    owner: 'gone',
    owned_until: at(4),
    done: 4,
  }
  const who = { consumer: 2, channelId: 'orders', consumerId: 'billing' }
  const behind = { createdAt: '1', id: 'j0' }
  add('runs', {
    ...{ ...run, id: String(runs[0]), kind: 'webhook-requeue', about: 'orders/billing', expected: 10 },
    ...{ subject: JSON.stringify({ ...who, last: behind }), place: JSON.stringify(behind) },
  })
  add('runs', {
    ...{
      ...run,
      id: String(runs[2]),
      kind: 'expire',
      about: 'letters',
      subject: '{"before":"1","engine":null}',
    },
    place: '{"drawer":null,"lastFailureAt":"-9223372036854775808","id":"0"}',
  })
}
