/** Puts records into the store, for as long as it takes, and says which offsets are durable then. */
import { type BackoffPolicy, backoffDelayMs } from '../../core/backoff.ts'
import type { Log } from '../../core/log.ts'
import { StoreUnavailable } from '../../db/database.ts'
import type { RawRecord } from '../event.ts'
import type { Gap, KafkaListener, RecordStore } from '../ports.ts'
import type { Board, Lane } from './reader-board.ts'
import { rest } from './reader-wait.ts'

/** A store call takes about 4 MB: 1,000 records of the usual 1 KB leave room for larger ones. */
const MOST_RECORDS = 1_000
const MOST_BYTES = 4_194_304

const BACKOFF: BackoffPolicy = { baseMs: 200, factor: 2, maxMs: 10_000, jitter: 0.3 }

/** Records of one topic on their way into the store, and how far that brings each partition. */
export class Chunk {
  readonly topic: string
  readonly records: RawRecord[] = []
  readonly reached = new Map<Lane, bigint>()
  #bytes = 0

  constructor(topic: string) {
    this.topic = topic
  }

  get isFull(): boolean {
    return this.records.length >= MOST_RECORDS || this.#bytes >= MOST_BYTES
  }

  add(lane: Lane, record: RawRecord): void {
    this.records.push(record)
    this.reached.set(lane, record.offset + 1n)
    this.#bytes += (record.key?.length ?? 0) + (record.value?.length ?? 0)
    for (const { name, value } of record.headers) this.#bytes += name.length + (value?.length ?? 0)
  }

  /** Everything before the offset is read, also what was no record: marks of transactions, what was compacted away. */
  reach(lane: Lane, offset: bigint): void {
    this.reached.set(lane, offset)
  }
}

export interface KeepParts {
  readonly store: RecordStore
  readonly listener?: KafkaListener
  readonly board: Board
  readonly log: Log
}

/** Stores a chunk. False when `signal` came before the store could: nothing is stored then. */
export function keepChunk(parts: KeepParts, chunk: Chunk, signal: AbortSignal): Promise<boolean> {
  if (chunk.records.length === 0) return Promise.resolve(!signal.aborted)
  return insist(parts, signal, async () => {
    const stored = await parts.store.store(chunk.records)
    parts.listener?.stored?.(chunk.topic, stored)
  })
}

/** Puts a gap on record, in the same way. */
export function keepGap(parts: KeepParts, gap: Gap, signal: AbortSignal): Promise<boolean> {
  return insist(parts, signal, async () => {
    await parts.store.gap(gap)
    parts.listener?.gap?.(gap)
  })
}

/** Until it works. Nothing is read meanwhile, so nothing can be lost or overtake. */
async function insist(
  { board, log }: KeepParts,
  signal: AbortSignal,
  write: () => Promise<void>,
): Promise<boolean> {
  for (let tries = 1; !signal.aborted; tries++) {
    try {
      await write()
      board.trouble('store', null)
      return true
    } catch (error) {
      const isAway = error instanceof StoreUnavailable
      // Anything else is a mistake of ours. Its message may hold what records hold.
      if (!isAway)
        log.error(
          { error: error instanceof Error ? error.name : 'unknown' },
          'dead events could not be stored',
        )
      board.trouble('store', isAway ? 'The store cannot be reached.' : 'The store does not take dead events.')
      await rest(backoffDelayMs(tries, BACKOFF), signal)
    }
  }
  return false
}
