/** A store with many letters to send back: some of keys, some of a plain queue. */

import { Office } from '../../src/office.ts'
import { type Database, type Integer, sql } from '../../src/store/database.ts'

/** Letters of a key go back to one of these, always the same. */
const QUEUES = ['orders', 'mails'] as const

const IN_ONE = 1_000

/** Fills an empty store, without a server: as many letters of keys as of a plain queue. */
export async function fillLetters(url: string, letters: number, keys: number): Promise<void> {
  const office = await Office.open({ store: url })
  try {
    const settings = { leaseTimeout: '1h', expireTimeout: '240h', requestedPartitions: 1 }
    await office.queues.create({ ...settings, queueName: 'dead' })
    for (const queueName of QUEUES) await office.queues.create({ ...settings, queueName, deadQueue: 'dead' })
    for (let done = 0; done < letters; done += IN_ONE) {
      const n = done / IN_ONE
      const [some, queueName] = [Math.min(IN_ONE, letters - done), QUEUES[(n >> 1) % 2] ?? '']
      await kill(office, queueName, some, n % 2 === 0 ? null : (i) => `${queueName}-${i % (keys / 2)}`)
    }
  } finally {
    await office.close()
  }
}

/** Items die: in the hands of an engine that names their key, or of nobody. */
async function kill(
  { queues }: Office,
  queueName: string,
  letters: number,
  keyOf: ((i: number) => string) | null,
): Promise<void> {
  const produced = Array.from({ length: letters }, (_, i) => ({ payload: `{"number":${i}}` }))
  await queues.produce({ queueName, items: produced, requestTimeout: '1m' })
  const lease = { queueName, clientId: 'killer', batchSize: letters, requestTimeout: '10s' }
  const { partition, items } = await queues.lease(lease)
  const runOf = (i: number) => ({
    ...{
      engine: 'hmac',
      operation: 'rotate',
      instanceId: keyOf?.(i) ?? '',
      correlationId: crypto.randomUUID(),
    },
    ...{ actor: 'tester', durationMs: 1, input: null, output: null },
    ...{ errorClass: 'Error', errorMessage: 'it failed', errorStack: null },
  })
  const dead = items.map(({ id }, i) => ({ id, dead: true, ...(keyOf === null ? {} : { run: runOf(i) }) }))
  await queues.retry({ queueName, partition, items: dead })
}

const readBooks = sql(
  'test.redriveBooks',
  `SELECT (SELECT count(*) FROM bartleby.items WHERE case_id IS NOT NULL) AS items,
     (SELECT count(DISTINCT case_id) FROM bartleby.items) AS cases,
     (SELECT count(*) FROM bartleby.letters WHERE resolution = 'retry' AND redrive IS NOT NULL) AS letters,
     (SELECT count(*) FROM bartleby.history WHERE series IN (SELECT id FROM bartleby.history_series WHERE operation = 'retry')) AS retries,
     (SELECT count(DISTINCT letter_id) FROM bartleby.history
      WHERE series IN (SELECT id FROM bartleby.history_series WHERE operation = 'retry')) AS retried`,
)

/** Letters whose item lies before that of an earlier letter of their key. */
const countOvertakers = sql(
  'test.overtakers',
  `SELECT count(*) AS letters FROM (
     SELECT item.id AS serial, lag(item.id) OVER (PARTITION BY letter.engine, letter.instance_id ORDER BY letter.captured_at, letter.id) AS before
     FROM bartleby.items AS item JOIN bartleby.letters AS letter ON letter.id = item.case_id WHERE letter.instance_id IS NOT NULL
   ) AS pairs WHERE before > serial`,
)

/** What the store has of letters that were sent. */
export interface Books {
  readonly items: number
  /** Letters that have an item. */
  readonly cases: number
  /** Letters that a redrive sent. */
  readonly letters: number
  /** Rows of history that say so, and their letters. */
  readonly retries: number
  readonly retried: number
  /** Letters that overtook an earlier one of their key. */
  readonly overtakers: number
}

export async function booksOf(db: Database): Promise<Books> {
  return db.session('test', async (session) => {
    const [books] = await session.rows<Record<Exclude<keyof Books, 'overtakers'>, Integer>>(readBooks)
    const [pairs] = await session.rows<{ letters: Integer }>(countOvertakers)
    return {
      items: Number(books?.items),
      cases: Number(books?.cases),
      letters: Number(books?.letters),
      retries: Number(books?.retries),
      retried: Number(books?.retried),
      overtakers: Number(pairs?.letters),
    }
  })
}
