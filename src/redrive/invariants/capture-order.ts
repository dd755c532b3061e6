/**
 * I9: letters of one key that a redrive kept in order went out as they were captured. Serials of items ascend over the whole store, so the
 * serials that letters of a key were sent as must ascend with their captures. And no letter was sent long after the arrival of an earlier,
 * still pending one to which nothing has happened since its capture.
 */
import { instant } from '../../core/clock.ts'
import { UNNAMED_INSTANCE } from '../../core/source-id.ts'
import { formatMicros } from '../../core/timestamp.ts'
import type { Audit, Finding, FoundRow, Invariant } from '../../letters/audit/invariant.ts'
import { batchesOf, read } from '../../letters/audit/walk.ts'
import { goesToQueues } from '../../letters/kinds.ts'
import { STATUS } from '../../letters/letter.ts'
import { isSending } from '../redrive.ts'
import { redriven, redrivePages } from './lanes.ts'

/** Letters with a key, by key and capture. */
const readKeys = read(
  'letterKeys',
  `SELECT id, engine, instance_id AS key, captured_at, resolved_at, drawer, version, status, redrive, sent_as AS "sentAs"
   FROM bartleby.letters WHERE instance_id IS NOT NULL AND instance_id <> '${UNNAMED_INSTANCE}'
   ORDER BY engine, instance_id, captured_at, id`,
)

/** After so long a capture is visible to every sender: its transaction was over. */
const LATER_US = 60_000_000

export const captureOrder: Invariant = {
  id: 'I9',
  promise: 'of a key, a redrive sends letters in the order of their capture',
  rows: async (audit) => ((await redriven(audit)) === 0 ? 0 : audit.sizes.letters),
  async *check(audit) {
    const redrives = new Map<number, string>()
    for await (const page of redrivePages(audit))
      for (const { number, id, action, terms } of page)
        if (isSending(action) && terms.order === 'key') redrives.set(number, id)
    if (redrives.size === 0) return
    let key = new KeyInOrder()
    for await (const letters of batchesOf(audit, readKeys)) {
      for (const letter of letters) {
        if (!key.has(letter)) key = new KeyInOrder()
        const redrive = redrives.get(Number(letter.redrive))
        if (redrive !== undefined && letter.sentAs !== null && isInQueue(audit, letter))
          for (const finding of key.faultsOf(letter, redrive)) yield finding
        key.add(letter)
      }
    }
  },
}

const isInQueue = ({ drawers }: Audit, { drawer }: FoundRow): boolean => {
  const source = drawers.get(Number(drawer))?.source
  return source !== undefined && goesToQueues(source)
}

/** The letters of one key up to one of them. */
class KeyInOrder {
  /** The last one sent, by redrive. */
  readonly #sent = new Map<number, FoundRow>()
  /** The first pending one. */
  #pending: FoundRow | undefined
  #last: FoundRow | undefined

  has({ engine, key }: FoundRow): boolean {
    return this.#last !== undefined && this.#last.engine === engine && this.#last.key === key
  }

  add(letter: FoundRow): void {
    this.#last = letter
    if (letter.redrive !== null && letter.sentAs !== null) this.#sent.set(Number(letter.redrive), letter)
    if (Number(letter.status) === STATUS.Pending) this.#pending ??= letter
  }

  /** Faults of a sent letter behind these. */
  *faultsOf(letter: FoundRow, redrive: string): Iterable<Finding> {
    const { engine, key, id, sentAs, resolved_at: sentAt } = letter
    const row = { redrive, engine, key, letter: id }
    const before = this.#sent.get(Number(letter.redrive))
    if (before !== undefined && serialOf(before) > serialOf(letter))
      yield {
        what: `letter ${id} was sent before letter ${before.id} of its key, which was captured before it`,
        row: { ...row, before: before.id, sentAs, beforeSentAs: before.sentAs },
      }
    const pending = this.#pending
    if (pending === undefined || Number(pending.version) !== 1 || sentAt === null) return
    if (Number(pending.captured_at) < Number(sentAt) - LATER_US)
      yield {
        what: `letter ${id} was sent although letter ${pending.id} of its key, captured before it, was pending`,
        row: { ...row, before: pending.id, sentAt: formatMicros(instant(BigInt(sentAt ?? 0))) },
      }
  }
}

/** The last nine characters of an item's id: its serial, in digits that sort. */
const serialOf = ({ sentAs }: FoundRow): string => String(sentAs).slice(-9)
