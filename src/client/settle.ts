/**
 * Settling items (complete, retry) in batches: what gathers while one call is in flight goes out with the
 * next, per partition. No timer delays a lone item. Calls that may succeed later are repeated with back-off;
 * an item that the server refuses is taken out, so that it does not hold up the others of its batch.
 */
import { backoffDelayMs, SETBACK } from '../core/backoff.ts'
import { sleep } from '../core/waiting.ts'
import { QueueClientError } from './errors.ts'
import type { RetryItem } from './types.ts'

/** The server's limit for one call. */
const LARGEST_BATCH = 1000

interface Waiting<Entry> {
  readonly entry: Entry
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface Line<Entry> {
  waiting: Waiting<Entry>[]
  sending: boolean
}

export interface SettlerOptions<Entry> {
  readonly send: (partition: number, entries: readonly Entry[]) => Promise<void>
  /** Told of each failure that is tried again. */
  readonly onSetback: (error: QueueClientError) => void
  /** Ends all waiting; what is not settled by then is rejected. */
  readonly signal: AbortSignal
  /** Entries per call; the server's limit unless given. */
  readonly largestBatch?: number
}

export class Settler<Entry extends { readonly id: string }> {
  readonly #options: SettlerOptions<Entry>
  readonly #lines = new Map<number, Line<Entry>>()

  constructor(options: SettlerOptions<Entry>) {
    this.#options = options
  }

  /** Resolves once the server has confirmed; rejects when it refuses this item, or when the signal aborts. */
  settle(partition: number, entry: Entry): Promise<void> {
    const line = this.#lines.get(partition) ?? { waiting: [], sending: false }
    this.#lines.set(partition, line)
    return new Promise((resolve, reject) => {
      line.waiting.push({ entry, resolve, reject })
      // Not awaited: it never rejects, and every entry's promise tells its outcome.
      if (!line.sending) void this.#drain(partition, line)
    })
  }

  async #drain(partition: number, line: Line<Entry>): Promise<void> {
    line.sending = true
    const { largestBatch = LARGEST_BATCH } = this.#options
    while (line.waiting.length > 0) await this.#deliver(partition, line.waiting.splice(0, largestBatch))
    line.sending = false
  }

  async #deliver(partition: number, first: Waiting<Entry>[]): Promise<void> {
    const { send, onSetback, signal } = this.#options
    let batch = first
    let failures = 0
    while (batch.length > 0) {
      try {
        await send(
          partition,
          batch.map(({ entry }) => entry),
        )
        for (const { resolve } of batch) resolve()
        return
      } catch (error) {
        if (!(error instanceof QueueClientError) || signal.aborted) return rejectAll(batch, error)
        const refused = batch.find(({ entry }) => error.message.includes(`'${entry.id}'`))
        if (refused !== undefined) {
          batch = batch.filter((waiting) => waiting !== refused)
          // After a call without a reply the item may be unknown because that call did its work.
          if (failures > 0 && error.code === 'item_unknown') refused.resolve()
          else refused.reject(error)
        } else if (error.retryable) {
          onSetback(error)
          await sleep(backoffDelayMs(++failures, SETBACK), signal)
        } else {
          return rejectAll(batch, error)
        }
      }
    }
  }
}

function rejectAll<Entry>(batch: readonly Waiting<Entry>[], error: unknown): void {
  for (const { reject } of batch) reject(error)
}

/** Items of one call that may each say what failed: 20 of them at 12,800 bytes are the 256,000 of a body. */
export const LARGEST_FAILED_BATCH = 20

/** In characters, of which each takes at most six bytes in JSON: together less than 12,800. */
const MOST = { errorClass: 100, errorMessage: 500, errorStack: 1_400 }

export type GivenError = Pick<RetryItem, 'errorClass' | 'errorMessage' | 'errorStack'>

/** What a handler threw, as a retry tells it to the server, in few words: a full batch stays within the limit of a body; nothing of what throws when it is looked at. */
export function givenError(thrown: unknown): GivenError {
  try {
    return described(thrown)
  } catch {
    return {}
  }
}

function described(thrown: unknown): GivenError {
  if (!(thrown instanceof Error)) return { errorMessage: cut(String(thrown), MOST.errorMessage) }
  const { name, message, stack } = thrown
  return {
    errorClass: cut(String(name), MOST.errorClass),
    errorMessage: cut(String(message), MOST.errorMessage),
    ...(typeof stack === 'string' && { errorStack: cut(stack, MOST.errorStack) }),
  }
}

const cut = (text: string, most: number): string =>
  (text.length <= most ? text : `${text.slice(0, most - 1)}…`).toWellFormed()
