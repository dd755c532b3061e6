/**
 * Keeps records as letters, one transaction a chunk. Each record is a copy of one that is here, the next death of a letter, or a letter of
 * its own. A record read twice, even by two servers at once, is stored once.
 */

import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../core/clock.ts'
import { recordHistory } from '../../../history/record.ts'
import type { Registers } from '../../../letters/registers.ts'
import { inOffice, type OfficeWork } from '../../../letters/work.ts'
import type { Database, Transaction } from '../../../store/database.ts'
import {
  type DlqId,
  dlqId,
  type EventId,
  KAFKA,
  KAFKA_OPERATIONS,
  type RawRecord,
  SYSTEM,
  type Warning,
} from '../event.ts'
import type { KafkaListener } from '../metrics.ts'
import type { KafkaSettings } from '../settings/settings.ts'
import type { RedriveOf, Settled } from './bury.ts'
import { buryRecords, holdCases } from './bury.ts'
import { isElsewhere, type Known, type KnownSend, lookUp, takenAmong } from './known-records.ts'
import {
  advance,
  countsOf,
  type Gap,
  lockPartitionCounts,
  NOTHING_STORED,
  type PartitionCounts,
  type Stored,
  storedByTopic,
  sum,
  writePartitionCounts,
} from './partition-counts.ts'
import {
  derivedId,
  type Entry,
  type Incoming,
  incoming,
  type Reopening,
  withFacts,
  withWarnings,
} from './store-incoming.ts'

export interface RecordStoreOptions {
  readonly db: Database
  readonly clock: Clock
  readonly registers: Registers
  readonly settings: KafkaSettings
  readonly redriveOf: RedriveOf
  readonly listener?: KafkaListener
}

export interface RecordStore {
  /**
   * Reads the records before the store is asked. The returned function stores them in one transaction, each partition's in the order of its
   * offsets; then their offsets may be committed. It throws `StoreUnavailable` with nothing stored, and may be called again.
   */
  prepare(records: readonly RawRecord[]): () => Promise<Stored>
  gap(gap: Gap): Promise<void>
}

export function createRecordStore(options: RecordStoreOptions): RecordStore {
  const { db, clock, settings, listener } = options
  return {
    prepare(records) {
      const all = incoming(records, settings)
      return async () => {
        if (all.length === 0) return NOTHING_STORED
        const done = await inOffice(db, clock, 'kafka.store', (work) => storeAll(work, options, all))
        return notify(done, listener)
      }
    },
    async gap(gap) {
      await inOffice(db, clock, 'kafka.gap', (work) => recordGap(work, gap))
      listener?.gap?.(gap)
    },
  }
}

interface Done extends Sorted {
  readonly partitions: PartitionCounts
  readonly settled: readonly Settled[]
}

async function storeAll(
  work: OfficeWork,
  { registers, redriveOf }: RecordStoreOptions,
  all: readonly Incoming[],
): Promise<Done> {
  const { tx } = work
  const [partitions, known] = await Promise.all([
    lockPartitionCounts(
      tx,
      all.map(({ record }) => record),
    ),
    lookUp(tx, all),
  ])
  const named = await sortOut(tx, all, known, partitions)
  const cases = await holdCases(tx, sendsOf(named, known))
  const sorted = arrange(named, known, cases.sends, partitions)
  const settled = await buryRecords(work, registers, redriveOf, sorted, cases)
  writePartitionCounts(tx, partitions)
  return { ...sorted, partitions, settled }
}

function notify(
  { partitions, created, reopened, settled }: Done,
  listener: KafkaListener | undefined,
): Stored {
  let all = NOTHING_STORED
  for (const [topic, stored] of storedByTopic(partitions)) {
    listener?.stored?.(topic, stored)
    all = sum(all, stored)
  }
  for (const { facts } of [...created, ...reopened.map(({ entry }) => entry)]) {
    if (facts.reasons.length > 0) listener?.quarantined?.(facts.service, facts.reasons)
  }
  for (const { service, originalTopic } of settled) listener?.resolved?.(service, originalTopic, 'published')
  return all
}

async function recordGap(work: OfficeWork, { topic, partition, expected, found }: Gap): Promise<void> {
  const { tx, now } = work
  const partitions = await lockPartitionCounts(tx, [{ topic, partition }])
  countsOf(partitions, { topic, partition }).gaps++
  writePartitionCounts(tx, partitions)
  await recordHistory(tx, [
    {
      engine: KAFKA,
      operation: KAFKA_OPERATIONS.gap,
      status: 'Succeeded',
      instanceId: null,
      correlationId: `${topic}:${partition}`,
      createdAt: now,
      durationMs: 0,
      actor: SYSTEM.actor,
      output: Buffer.from(
        JSON.stringify({ topic, partition, expected: expected.toString(), found: found.toString() }),
      ),
    },
  ])
}

/** Both in the order in which they came. */
export interface Sorted {
  readonly created: readonly Entry[]
  readonly reopened: readonly Reopening[]
}

interface Named {
  readonly each: Incoming
  readonly id: DlqId
  readonly isReused: boolean
}

/** New records, each once, with their names; the others count as duplicates. */
async function sortOut(
  tx: Transaction,
  all: readonly Incoming[],
  known: Known,
  partitions: PartitionCounts,
): Promise<readonly Named[]> {
  const seen = new Set(known.records)
  const places = new Set(known.places)
  const fresh: { each: Incoming; isReused: boolean }[] = []
  for (const each of all) {
    const counts = countsOf(partitions, each.record)
    counts.received++
    if (seen.has(each.sourceId)) counts.duplicates++
    else fresh.push({ each, isReused: places.has(each.place) })
    seen.add(each.sourceId)
    places.add(each.place)
  }
  return nameAll(tx, fresh, known.takenIds)
}

async function nameAll(
  tx: Transaction,
  fresh: readonly { readonly each: Incoming; readonly isReused: boolean }[],
  known: ReadonlySet<DlqId>,
): Promise<readonly Named[]> {
  const taken = new Set(known)
  const claimed = (id: DlqId): DlqId | null => {
    if (taken.has(id)) return null
    taken.add(id)
    return id
  }
  const named = fresh.map((one) => ({ ...one, id: claimed(one.each.ownId ?? derivedId(one.each)) }))
  const nameless = named.filter(({ id }) => id === null).map(({ each }) => derivedId(each))
  for (const id of await takenAmong(tx, nameless)) taken.add(id)
  // Whoever writes to a topic may use the name that the store would derive for the next record.
  const second = (each: Incoming): DlqId => claimed(derivedId(each)) ?? dlqId(randomUUID())
  return named.map(({ id, ...one }) => ({ ...one, id: id ?? second(one.each) }))
}

const sendsOf = (named: readonly Named[], { sends }: Known): readonly EventId[] => [
  ...new Set(named.flatMap(({ each }) => sends.get(each.sourceId) ?? [])),
]

/** Gives each its place in the order, and tells new letters from reopened ones. `sends` have their letters locked. */
function arrange(
  named: readonly Named[],
  known: Known,
  sends: ReadonlyMap<EventId, KnownSend>,
  partitions: PartitionCounts,
): Sorted {
  const created: Entry[] = []
  const reopened: Reopening[] = []
  const spent = new Set<EventId>()
  for (const { each, id, isReused } of named) {
    const counts = countsOf(partitions, each.record)
    const orderTs = advance(counts, each.record)
    const send = sendOf(each, known, sends)
    const isSpent = send !== undefined && (send.isSpent || spent.has(send.eventId))
    const isDoubleName = each.ownId !== null && id !== each.ownId
    const warnings: Warning[] = [
      ...(isReused ? (['position_reused'] as const) : []),
      ...(isDoubleName ? (['duplicate_event_id'] as const) : []),
      ...(isSpent ? (['duplicate_retry'] as const) : []),
    ]
    const warned = withWarnings(each.facts, warnings)
    const facts = isDoubleName && each.ownId !== null ? { ...warned, duplicateOf: each.ownId } : warned
    const entry: Entry = { ...withFacts(each, facts), dlqId: id, orderTs }
    if (send === undefined || isSpent) {
      counts.created++
      created.push(entry)
    } else {
      counts.reopened++
      spent.add(send.eventId)
      reopened.push({ entry, letterId: send.letterId, send: send.eventId })
    }
  }
  return { created, reopened }
}

/** The publish that the record died of, now that its letter is locked. */
function sendOf(each: Incoming, known: Known, sends: ReadonlyMap<EventId, KnownSend>): KnownSend | undefined {
  const sent = known.sends.get(each.sourceId)
  const send = sent === undefined ? undefined : sends.get(sent)
  return send === undefined || isElsewhere(each, send) ? undefined : send
}
