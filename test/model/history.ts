/**
 * What several clients saw: every call with the moment it was made and the moment it was answered, on one
 * counter, and the time of the office at both. Items are known by their label (the payload), because ids change.
 */
import type { Instant } from '../../src/core/clock.ts'
import type { LeasedItem, QueueDepth, QueueStats, StoredItem } from '../../src/queues/queue.ts'

export interface Span {
  /** Places on the counter that all calls share: a call that ended before another began has the lower ones. */
  readonly began: number
  readonly ended: number
  /** The office's time at both; what the call did happened at some instant between them. */
  readonly from: Instant
  readonly to: Instant
}

export interface Produced {
  readonly label: string
  readonly id: string
  readonly enqueueAt: Instant | null
}

export type Deed =
  | { readonly verb: 'produce'; readonly items: readonly Produced[] }
  | { readonly verb: 'lease'; readonly batchSize: number; readonly items: readonly LeasedItem[] }
  | { readonly verb: 'complete'; readonly ids: readonly string[] }
  | {
      readonly verb: 'retry'
      readonly ids: readonly string[]
      readonly retryAt: Instant | null
      readonly dead: boolean
    }
  | { readonly verb: 'extend'; readonly ids: readonly string[]; readonly deadline: Instant | null }
  | { readonly verb: 'delete'; readonly ids: readonly string[] }

/** One call. A refused one carries the code of its error and has changed nothing. */
export type Call = Span & Deed & { readonly refused: string | null }

export interface Rules {
  readonly leaseUs: bigint
  readonly expireUs: bigint
  readonly maxAttempts: number
  readonly hasDeadQueue: boolean
  /** One server hands out ids strictly in order; of several, each may be ahead of the other. */
  readonly servers: number
}

export interface Ending {
  readonly now: Instant
  readonly queued: readonly StoredItem[]
  readonly scheduled: readonly StoredItem[]
  readonly dead: readonly StoredItem[]
  readonly stats: QueueStats
  readonly depth: QueueDepth
  readonly deadDepth: QueueDepth | null
}

export interface History {
  readonly rules: Rules
  readonly calls: readonly Call[]
  readonly ending: Ending
}

export const labelOf = (item: { readonly payload: Uint8Array }): string =>
  Buffer.from(item.payload).toString('utf8')

/** Writes a history down while it happens. */
export class Recorder {
  readonly calls: Call[] = []
  readonly #now: () => Instant
  #counter = 0

  constructor(now: () => Instant) {
    this.#now = now
  }

  /** Makes a call; `deed` tells what it asked, with what it was answered. */
  async record<T>(call: () => Promise<T>, deed: (answer: T | undefined) => Deed): Promise<T | undefined> {
    const began = this.#counter++
    const from = this.#now()
    let answer: T | undefined
    let refused: string | null = null
    try {
      answer = await call()
    } catch (error) {
      refused = codeOf(error)
    }
    this.calls.push({ ...deed(answer), refused, began, ended: this.#counter++, from, to: this.#now() })
    return answer
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : `${error.name}: ${error.message}`
}
