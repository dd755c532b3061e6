/** Things that happen to the letters of a `LetterStore`, through the functions that do them in the product. */
import type { Clock } from '../../src/core/clock.ts'
import { sql } from '../../src/db/database.ts'
import { capture } from '../../src/letters/capture.ts'
import { noteDeath } from '../../src/letters/death-note.ts'
import { lockLetter } from '../../src/letters/detail.ts'
import type { LetterId, LetterStatus } from '../../src/letters/letter.ts'
import { lockLettersOf, type Relapse, reopenLetters } from '../../src/letters/reopen.ts'
import { transition } from '../../src/letters/transition.ts'
import { inOffice } from '../../src/letters/work.ts'
import type { LetterStore } from './letter-store.ts'

/** A record of the history that says little. */
const RECORD = { status: 'Succeeded', durationMs: 0, actor: 'tester', input: null, output: null } as const

/** The letters' retried items die again, in one transaction, now. */
export function reopen(
  { db, clock, registers }: LetterStore,
  ids: readonly LetterId[],
  errorMessage = 'the key is gone again',
): Promise<void> {
  return inOffice(db, clock, 'test.reopen', async (work) => {
    const cases = await lockLettersOf(work.tx, ids)
    const relapses: Relapse[] = []
    for (const id of ids) {
      const letter = await lockLetter(work.tx, id)
      if (letter === null) throw new Error(`there is no letter ${id}`)
      const note = await noteDeath(
        work,
        registers,
        {
          source: letter.source,
          engine: letter.engine,
          queue: letter.originalQueue,
          instanceId: null,
          correlationId: null,
          reason: 'attempts',
          errorClass: 'RangeError',
          errorMessage,
          errorStack: null,
          failedBy: 'worker',
          record: { ...RECORD, operation: 'reopen' },
        },
        { capturedAt: work.now },
      )
      relapses.push({ letterId: id, note, attempts: 1, diedAs: 'an-item', grave: null })
    }
    await reopenLetters(work, relapses, cases)
  })
}

/** An item of a plain queue dies: its letter has no instance and no correlation but its source id. */
export function captureFromQueue(
  { db, clock, registers }: Pick<LetterStore, 'db' | 'registers'> & { readonly clock: Clock },
  sourceId: string,
  queue = 'orders',
): Promise<LetterId> {
  return inOffice(db, clock, 'test.die', async (work) => {
    const note = await noteDeath(
      work,
      registers,
      {
        source: 'queues',
        engine: 'queues',
        queue,
        instanceId: null,
        correlationId: null,
        reason: 'attempts',
        errorClass: 'AttemptsExhausted',
        errorMessage: 'all attempts are used up',
        errorStack: null,
        failedBy: null,
        record: { ...RECORD, operation: 'capture' },
      },
      { capturedAt: work.now },
    )
    const id = await capture(work, note, {
      caseId: null,
      sourceId,
      itemCreatedAt: work.now,
      dequeueCount: 3,
      partition: 2,
      grave: {
        deadQueue: `${queue}-dead`,
        part: 7,
        serial: Math.floor(Math.random() * 2 ** 40),
        laidAt: work.now,
      },
      encoding: null,
      kind: null,
      reference: Buffer.from('customer 7'),
      headers: null,
      payload: Buffer.from('hello'),
    })
    if (id === null) throw new Error(`'${sourceId}' has a letter already`)
    return id
  })
}

/** Somebody makes the letter what `status` says. */
export function settle({ db, clock }: LetterStore, id: LetterId, status: LetterStatus): Promise<void> {
  return inOffice(db, clock, 'test.settle', async (work) => {
    const letter = await lockLetter(work.tx, id)
    if (letter === null) throw new Error(`there is no letter ${id}`)
    const resolution = { Pending: null, Resolved: 'discard', Expired: 'expire' } as const
    const outcome = {
      status,
      resolution: resolution[status],
      resolvedAt: status === 'Pending' ? null : work.now,
      resolvedBy: status === 'Pending' ? null : 'tester',
      notes: null,
      sentAs: null,
      sentTo: null,
    }
    await transition(work, letter, outcome, {
      act: resolution[status] ?? 'restore',
      actor: 'tester',
      notes: null,
    })
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
