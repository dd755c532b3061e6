/** Things that happen to the letters of a `LetterStore`, through the functions that do them in the product. */
import type { Clock } from '../../src/core/clock.ts'
import { bury, type Cause, PLAIN_RECORD } from '../../src/letters/bury.ts'
import { allocateLetterIds, takingGiven } from '../../src/letters/capture.ts'
import { change } from '../../src/letters/change.ts'
import { type LetterId, type LetterStatus, STATUS } from '../../src/letters/letter.ts'
import { lockLetter } from '../../src/letters/lists/detail.ts'
import { inOffice } from '../../src/letters/work.ts'
import { sql } from '../../src/store/database.ts'
import type { LetterStore } from './letter-store.ts'

/** What died, of something; `where` says where it was. */
const causeIn = (where: Pick<Cause, 'source' | 'engine' | 'queue'>, errorMessage: string): Cause => ({
  ...where,
  reason: 'attempts',
  errorClass: 'RangeError',
  errorMessage,
  errorStack: null,
  failedBy: 'worker',
  record: { ...PLAIN_RECORD, actor: 'tester' },
})

const NOTHING_LEFT = {
  itemCreatedAt: null,
  dequeueCount: 3,
  partition: 2,
  encoding: null,
  kind: null,
  reference: null,
  headers: null,
  payload: null,
}

/** The letters' retried items die again, in one transaction, now. */
export async function reopen(
  { db, clock, registers }: LetterStore,
  ids: readonly LetterId[],
  errorMessage = 'the key is gone again',
): Promise<void> {
  // The letters stay where they are, wherever their items died.
  const cause = causeIn({ source: 'queues', engine: 'queues', queue: null }, errorMessage)
  const deaths = ids.map((id) => ({
    cause,
    caseId: id,
    sourceId: 'an-item',
    diedAs: 'an-item',
    attempts: 1,
    position: null,
    item: NOTHING_LEFT,
  }))
  await inOffice(db, clock, 'test.reopen', (work) => bury(work, registers, takingGiven(), deaths))
}

/** An item of a plain queue dies: its letter has no instance and no correlation but its source id. */
export async function captureFromQueue(
  { db, clock, registers }: Pick<LetterStore, 'db' | 'registers'> & { readonly clock: Clock },
  sourceId: string,
  queue = 'orders',
): Promise<LetterId> {
  const plain = causeIn({ source: 'queues', engine: 'queues', queue }, 'all attempts are used up')
  return inOffice(db, clock, 'test.die', async (work) => {
    const [caseId] = await allocateLetterIds(work.tx, 1)
    if (caseId === undefined) throw new Error('there is no number for a letter')
    const death = {
      cause: { ...plain, errorClass: 'AttemptsExhausted', failedBy: null },
      caseId,
      sourceId,
      diedAs: sourceId,
      attempts: 3,
      position: {
        deadQueue: `${queue}-dead`,
        part: 7,
        serial: Math.floor(Math.random() * 2 ** 40),
        laidAt: work.now,
      },
      item: {
        ...NOTHING_LEFT,
        itemCreatedAt: work.now,
        reference: Buffer.from('customer 7'),
        payload: Buffer.from('hello'),
      },
    }
    await bury(work, registers, takingGiven(), [death])
    return caseId
  })
}

/** Somebody makes the letter what `status` says. */
export function settle({ db, clock }: LetterStore, id: LetterId, status: LetterStatus): Promise<void> {
  return inOffice(db, clock, 'test.settle', async (work) => {
    const letter = await lockLetter(work.tx, id)
    if (letter === null) throw new Error(`there is no letter ${id}`)
    const how = { actor: 'tester', notes: null }
    const { engine } = letter
    if (letter.status !== 'Pending') {
      const before = { ...letter, status: STATUS[letter.status] }
      await change(work, 'restore', [{ id, engine, before, deliveries: 0 }], how)
    }
    if (status !== 'Pending')
      await change(work, status === 'Resolved' ? 'discard' : 'expire', [{ id, engine }], how)
  })
}

const clone = sql(
  'test.cloneLetter',
  `
  WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < $2)
  INSERT INTO bartleby.letters (id, captured_at, first_failure_at, last_failure_at, drawer, version, dequeue_count, status,
    engine, source_id, instance_id, correlation_id, reason, error_class, error_message, payload)
  SELECT 1000000000 + letters.id * 1000000 + copies.n, captured_at + copies.n, first_failure_at, last_failure_at, drawer,
    version, dequeue_count, status, engine, source_id || '-' || copies.n, instance_id, correlation_id, reason, error_class,
    error_message, payload
  FROM bartleby.letters CROSS JOIN copies WHERE letters.id = $1`,
)

/** Many more letters like this one, quickly: neither counted nor in history, and not searchable. */
export function cloneLetter({ db }: LetterStore, id: LetterId, copies: number): Promise<number> {
  return db.transaction('test.clone', (tx) => tx.run(clone, id, copies))
}
