/**
 * Keeps records as letters. One chunk is one transaction: what it stored is durable when it returns, with letters, counts, history,
 * order and register all or none. A record that is here already is counted and changes nothing, so whatever is read twice is stored
 * once, also by two servers at once: who stores records of a partition locks it.
 */
import type { Clock } from '../../core/clock.ts'
import type { Database } from '../../db/database.ts'
import { recordHistory } from '../../history/record.ts'
import type { Registers } from '../../letters/drawers.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import { KAFKA, KAFKA_OPERATIONS, SYSTEM } from '../event.ts'
import type { Gap, KafkaListener, RecordStore, Stored } from '../ports.ts'
import type { KafkaSettings } from '../settings.ts'
import { buryRecords, holdCases } from './bury.ts'
import { lookUp } from './known-records.ts'
import { type Incoming, incoming } from './store-incoming.ts'
import {
  type Books,
  bookOf,
  closeBooks,
  NOTHING_STORED,
  openBooks,
  storedByTopic,
  sum,
} from './store-partitions.ts'
import type { Settled } from './store-renew.ts'
import { arrange, type Sorted, sendsOf, sortOut } from './store-sort.ts'

interface RecordStoreOptions {
  readonly db: Database
  readonly clock: Clock
  readonly registers: Registers
  readonly settings: KafkaSettings
  readonly listener?: KafkaListener
}

export function createRecordStore({
  db,
  clock,
  registers,
  settings,
  listener,
}: RecordStoreOptions): RecordStore {
  return {
    prepare(records) {
      const all = incoming(records, settings)
      return async () => {
        if (all.length === 0) return NOTHING_STORED
        const done = await inOffice(db, clock, 'kafka.store', (work) => storeAll(work, registers, all))
        return tell(done, listener)
      }
    },
    async gap(gap) {
      await inOffice(db, clock, 'kafka.gap', (work) => recordGap(work, gap))
      listener?.gap?.(gap)
    },
  }
}

interface Done extends Sorted {
  readonly books: Books
  readonly settled: readonly Settled[]
}

async function storeAll(work: OfficeWork, registers: Registers, all: readonly Incoming[]): Promise<Done> {
  const { tx } = work
  const [books, known] = await Promise.all([
    openBooks(
      tx,
      all.map(({ record }) => record),
    ),
    lookUp(tx, all),
  ])
  const named = await sortOut(tx, all, known, books)
  const cases = await holdCases(tx, sendsOf(named, known))
  const sorted = arrange(named, known, cases.sends, books)
  const settled = await buryRecords(work, registers, sorted, cases)
  closeBooks(tx, books)
  return { ...sorted, books, settled }
}

function tell({ books, created, reopened, settled }: Done, listener: KafkaListener | undefined): Stored {
  let all = NOTHING_STORED
  for (const [topic, stored] of storedByTopic(books)) {
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
  const books = await openBooks(tx, [{ topic, partition }])
  bookOf(books, { topic, partition }).gaps++
  closeBooks(tx, books)
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
