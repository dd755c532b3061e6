/** Letters of earlier schema versions, in every status, with their history and their counts; some of these are not folded yet. */

import { STATUS } from '../../src/letters/letter.ts'
import { ACTIVITY, EVER } from '../../src/letters/numbers/counts.ts'
import type { ActivityName } from '../../src/letters/numbers/shapes.ts'
import { KAFKA_OPERATIONS } from '../../src/sources/kafka/event.ts'
import { queueOfConsumer } from '../../src/sources/webhooks/webhook.ts'
import {
  type Add,
  at,
  itemId,
  type Made,
  MINUTE,
  PAYLOAD,
  PUBLISHED,
  type Row,
  type Since,
} from './old-rows.ts'

/** Where letters lie: by source, engine and queue; of the first two the second is of another error. */
const DRAWERS = [
  { source: 'queues', engine: 'queues', queue: 'orders', signature: 1, place: 1, since: 5 },
  { source: 'queues', engine: 'queues', queue: 'orders', signature: 2, place: 1, since: 5 },
  { source: 'http', engine: 'hmac', queue: '', signature: 1, place: 2, since: 5 },
  { source: 'outbox', engine: 'outbox', queue: 'orders', signature: 1, place: 3, since: 5 },
  {
    ...{ source: 'webhooks', engine: 'webhooks', queue: queueOfConsumer('orders', 'billing') },
    ...{ signature: 1, place: 4, since: 6 },
  },
  { source: 'kafka', engine: 'kafka', queue: 'wps/orders', signature: 1, place: 5, since: 7 },
] as const
/** Its counts are not folded on PostgreSQL. */
const UNFOLDED = 3

export interface OldLetter {
  readonly id: number
  readonly drawer: number
  readonly status: number
  readonly sourceId: string
  /** The operations of its history, one for each version. */
  readonly history: readonly string[]
  /** What was told of it over time. */
  readonly told: readonly ActivityName[]
  readonly columns: Row
}

export function lettersOf(version: number, since: Since, { jobs }: Made): readonly OldLetter[] {
  if (version < 5) return []
  /** What ends kept of an earlier retry before version 18. */
  const stale = (row: Row): Row => (version < 18 ? row : {})
  const lying = (serial: number, seconds: number): Row => ({
    ...{ part: 102, shelf: 0, serial, laid_at: at(seconds), dead_queue: 'orders-dead' },
  })
  const inDeadQueue: Row = { dead_queue: 'orders-dead' }
  const ended = (resolution: string, seconds: number): Row => ({
    ...{ resolution, resolved_at: at(seconds), resolved_by: 'nell', notes: 'because' },
  })
  const named = (correlation: string): Row => ({ correlation_id: correlation, instance_id: 'i-1' })
  const plain = (id: number) => itemId(1_000 + id)
  const redriven = { redrive: since(11, 1) }
  const letters: readonly (OldLetter & { readonly since?: number })[] = [
    {
      ...{ id: 1, drawer: 1, status: STATUS.Pending, sourceId: plain(1), history: ['capture'] },
      ...{ told: ['arrived'], columns: lying(11, 1) },
    },
    {
      ...{ id: 2, drawer: 3, status: STATUS.Pending, sourceId: 's-2', history: ['capture'] },
      ...{ told: ['arrived'], columns: named('c-2') },
    },
    {
      ...{ id: 3, drawer: 1, status: STATUS.Resolved, sourceId: plain(3), history: ['capture', 'retry'] },
      told: ['arrived', 'retried'],
      columns: {
        ...{ ...inDeadQueue, ...ended('retry', 20), ...redriven, sent_as: itemId(4), sent_to: 'orders' },
      },
    },
    {
      ...{ id: 4, drawer: 1, status: STATUS.Resolved, sourceId: plain(4) },
      history: ['capture', 'retry', 'confirm'],
      told: ['arrived', 'retried', 'confirmed'],
      columns: {
        ...{ ...inDeadQueue, ...ended('retry', 20), ...redriven, sent_as: itemId(5), sent_to: 'orders' },
        confirmed_at: at(21),
      },
    },
    {
      ...{ id: 5, drawer: 1, status: STATUS.Resolved, sourceId: plain(5), history: ['capture', 'discard'] },
      told: ['arrived', 'discarded'],
      columns: {
        ...inDeadQueue,
        ...ended('discard', 20),
        ...stale({ sent_as: itemId(6), sent_to: 'orders' }),
      },
    },
    {
      ...{ id: 6, drawer: 1, status: STATUS.Expired, sourceId: plain(6), history: ['capture', 'expire'] },
      told: ['arrived', 'expired'],
      columns: {
        ...{ ...inDeadQueue, resolution: 'expire', resolved_by: 'nell', expired_at: since(13, at(20)) },
        ...stale({ resolved_at: at(20), sent_as: itemId(7), sent_to: 'orders' }),
      },
    },
    {
      ...{ id: 7, drawer: 1, status: STATUS.Resolved, sourceId: plain(7), history: ['capture', 'complete'] },
      told: ['arrived'],
      columns: {
        ...inDeadQueue,
        ...ended('complete', 20),
        ...stale({ sent_as: itemId(8), sent_to: 'orders' }),
      },
    },
    {
      ...{ id: 8, drawer: 2, status: STATUS.Pending, sourceId: plain(8) },
      history: ['capture', 'retry', 'reopen'],
      told: ['arrived', 'retried', 'returned'],
      columns: { ...lying(12, 22), sent_as: itemId(9), sent_to: 'orders', died_as: itemId(9) },
    },
    {
      ...{ id: 9, drawer: 4, status: STATUS.Pending, sourceId: 'orders/1', history: ['capture'] },
      ...{ told: ['arrived'], columns: named('c-9') },
    },
    {
      ...{ id: 10, drawer: 5, status: STATUS.Pending, sourceId: String(jobs[4]), history: ['capture'] },
      ...{ told: ['arrived'], columns: named('c-10'), since: 6 },
    },
    {
      ...{ id: 11, drawer: 6, status: STATUS.Pending, sourceId: 'wps_dlq:0:0' },
      history: [KAFKA_OPERATIONS.received],
      ...{ told: ['arrived'], columns: named('c-11'), since: 7 },
    },
    {
      ...{ id: 12, drawer: 6, status: STATUS.Resolved, sourceId: 'wps_dlq:0:1' },
      history: [KAFKA_OPERATIONS.received, KAFKA_OPERATIONS.published],
      told: ['arrived', 'retried'],
      columns: {
        ...{ ...named('c-12'), ...ended('retry', 20), sent_as: PUBLISHED, sent_to: 'orders' },
      },
      since: 7,
    },
  ]
  return letters.filter((letter) => (letter.since ?? 5) <= version)
}

/** How many letters a store of a version has, counting those that are still items. */
export const lettersAt = (version: number): number =>
  version < 2 ? 0 : version < 5 ? 2 : version < 6 ? 9 : version < 7 ? 10 : 12

export function addLetters(
  add: Add,
  version: number,
  letters: readonly OldLetter[],
  since: Since,
  isPostgres: boolean,
  { redrives }: Made,
): void {
  for (const fingerprint of ['1-a', '1-b'])
    add('signatures', { fingerprint, error_class: 'E', title: fingerprint, first_seen_at: at(1) })
  const drawers = DRAWERS.filter((drawer) => drawer.since <= version)
  if (version >= 20)
    for (const [i, { source, engine, queue }] of drawers.entries())
      if (i !== 1) add('places', { source, engine, queue })
  for (const [i, { source, engine, queue, signature, place }] of drawers.entries()) {
    const origin = version >= 8 && version < 20 ? { origin: i === 1 ? 1 : i + 1 } : {}
    add('drawers', { source, engine, queue, signature, ...origin, place: since(20, place) })
  }
  // Version 5 made it.
  const series = new Map([['queues capture', 1]])
  for (const letter of letters) {
    const { id, drawer, status, sourceId, columns } = letter
    const engine = DRAWERS[drawer - 1]?.engine ?? ''
    add('letters', {
      ...{ id, drawer, status, engine, source_id: sourceId, version: letter.history.length },
      ...{ captured_at: at(id), first_failure_at: at(id), last_failure_at: at(id), dequeue_count: 1 },
      ...{ reason: 'attempts', error_class: 'E', error_message: 'e', payload: PAYLOAD, ...columns },
      // Every second one was captured since row keys have numbers.
      short_key: id % 2 === 0 ? since(19, null) : undefined,
    })
    for (const [i, operation] of letter.history.entries()) {
      const key = `${engine} ${operation}`
      if (!series.has(key)) {
        series.set(key, series.size + 1)
        add('history_series', { engine, operation, status: 0 })
      }
      const isPlain = columns.correlation_id === undefined
      add('history', {
        ...{
          created_at: i === 0 ? at(id) : at(19 + i),
          duration_ms: 0,
          letter_id: id,
          letter_version: i + 1,
        },
        series: series.get(key) ?? 0,
        correlation_id: !isPlain ? columns.correlation_id : i === 0 ? null : sourceId,
        instance_id: columns.instance_id,
        output:
          columns.redrive === undefined || operation !== 'retry'
            ? null
            : Buffer.from(`{"redrive":"${redrives[0]}"}`),
      })
    }
  }
  add('letter_attempts', {
    ...{
      letter_id: 8,
      number: 1,
      failed_at: at(8),
      superseded_at: at(21),
      error_class: 'E',
      error_message: 'e',
    },
  })
  add('letters_to_file', { first_letter: 1, last_letter: letters.length })
  addCounts(add, version, letters, isPostgres)
}

/** What is counted of letters, as the tables of a version have it. */
function addCounts(add: Add, version: number, letters: readonly OldLetter[], isPostgres: boolean): void {
  const seen = at(12)
  for (const [drawer, those] of Map.groupBy(letters, (letter) => letter.drawer)) {
    const isFolded = !isPostgres || drawer !== UNFOLDED
    const place = DRAWERS[drawer - 1]?.place ?? 0
    const statuses = new Map<number, number>()
    const count = (status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const acts = new Map<ActivityName, number>()
    for (const { status, told, columns } of those) {
      count(status)
      count(STATUS.captured)
      if (version >= 8 && columns.resolution === 'retry' && columns.confirmed_at === undefined)
        count(STATUS.unconfirmed)
      for (const act of told) acts.set(act, (acts.get(act) ?? 0) + 1)
    }
    if (version >= 20) for (const [act, many] of acts) if (act !== 'arrived') statuses.set(EVER[act], many)
    for (const [status, many] of statuses) {
      const row = { status, letters: many, last_seen_at: seen }
      if (version < 20) add(isFolded ? 'letter_totals' : 'letter_deltas', { drawer, ...row })
      else if (!isFolded) add('letter_changes', { place, drawer, ...row, at: MINUTE })
      else if (status !== STATUS.captured) add('letter_totals', { drawer, ...row })
    }
    if (version >= 8 && version < 20)
      for (const [act, many] of acts)
        if (!isFolded)
          add('letter_activity_deltas', { at: MINUTE, drawer, act: ACTIVITY[act], letters: many })
        else add('letter_activity', { grain: 2, subject: drawer, act: ACTIVITY[act], at: 0, letters: many })
    if (version >= 8 && isFolded)
      for (const [act, many] of acts)
        add(version < 20 ? 'letter_activity' : 'letter_hours', {
          ...(version < 20 && { grain: 1 }),
          ...{ subject: drawer, act: ACTIVITY[act], at: MINUTE, letters: many },
        })
  }
  addSums(
    add,
    version,
    letters.filter(({ drawer }) => !isPostgres || drawer !== UNFOLDED),
    seen,
  )
}

/** What is counted of places and of the whole office. */
function addSums(add: Add, version: number, letters: readonly OldLetter[], seen: number): void {
  if (version < 8) return
  const placeOf = ({ drawer }: OldLetter) => DRAWERS[drawer - 1]?.place ?? 0
  const acts = (those: readonly OldLetter[]) =>
    Map.groupBy(
      those.flatMap(({ told }) => told),
      (act) => act,
    )
  const hours = version < 20 ? 'letter_activity' : 'letter_hours'
  const grain = (number: number): Row => (version < 20 ? { grain: number } : {})
  for (const [act, { length }] of acts(letters)) {
    add(hours, { ...grain(1), subject: 0, act: ACTIVITY[act], at: MINUTE, letters: length })
    const minutes = version < 20 ? { grain: 0, subject: 0 } : {}
    add(version < 20 ? 'letter_activity' : 'letter_minutes', {
      ...{ ...minutes, act: ACTIVITY[act], at: MINUTE, letters: length },
    })
  }
  for (const [place, those] of Map.groupBy(letters, placeOf)) {
    // Before there were places, the first drawer stood for one.
    const first = DRAWERS.findIndex((drawer) => drawer.place === place) + 1
    for (const [act, { length }] of acts(those)) {
      add(hours, {
        ...grain(1),
        subject: version < 20 ? -first : -place,
        act: ACTIVITY[act],
        at: MINUTE,
        letters: length,
      })
      if (version >= 20)
        add('place_totals', { place, status: EVER[act], letters: length, last_seen_at: seen })
    }
    if (version < 20) continue
    const unconfirmed = those.filter(
      ({ columns }) => columns.resolution === 'retry' && columns.confirmed_at === undefined,
    )
    if (unconfirmed.length > 0)
      add('place_totals', {
        place,
        status: STATUS.unconfirmed,
        letters: unconfirmed.length,
        last_seen_at: seen,
      })
    for (const [status, { length }] of Map.groupBy(those, (letter) => letter.status))
      add('place_totals', { place, status, letters: length, last_seen_at: seen })
  }
}
