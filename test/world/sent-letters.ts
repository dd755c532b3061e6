/** Letters that were sent back, as the tables have them: what went out, what waits, and in which order. */
import { STATUS } from '../../src/letters/letter.ts'
import { type Database, type Integer, type Statement, sql } from '../../src/store/database.ts'

const read = <Row>(db: Database, statement: Statement): Promise<Row[]> =>
  db.session('test', (session) => session.rows<Row>(statement))

const SENDS = sql(
  'test.sends',
  `SELECT letter_id AS id, letter_version AS version, record.output, letters.engine, letters.instance_id, captured_at
   FROM bartleby.history AS record JOIN bartleby.history_series ON history_series.id = series
   JOIN bartleby.letters ON letters.id = letter_id
   WHERE operation = 'retry' ORDER BY letter_id, letter_version`,
  { bigints: true },
)

const PENDING_OF_KEYS = sql(
  'test.pendingOfKeys',
  `SELECT id, version, engine, instance_id, captured_at FROM bartleby.letters
   WHERE status = ${STATUS.Pending} AND instance_id IS NOT NULL AND engine <> 'queues'`,
  { bigints: true },
)

interface LetterRow {
  readonly id: Integer
  readonly version: Integer
  readonly engine: string
  readonly instance_id: string | null
  readonly captured_at: Integer
}

/** A letter in one of its versions; `key` names those that keep their order. */
export interface KeyedLetter {
  readonly letter: string
  readonly version: number
  readonly key: string | null
  readonly capturedAt: bigint
}

/** A letter that went out. */
export interface Send extends KeyedLetter {
  /** null: it was sent by hand. */
  readonly redrive: string | null
  /** The item's id ends with its place in the order in which all items of the store were put into queues. */
  readonly serial: string
}

const keyedLetter = ({ id, version, engine, instance_id, captured_at }: LetterRow): KeyedLetter => ({
  letter: String(id),
  version: Number(version),
  key: instance_id === null ? null : `${engine} ${instance_id}`,
  capturedAt: BigInt(captured_at),
})

/** Everything that went out. */
export async function sendsIn(db: Database): Promise<Send[]> {
  const rows = await read<LetterRow & { readonly output: Uint8Array }>(db, SENDS)
  return rows.map((row) => {
    const output = JSON.parse(Buffer.from(row.output).toString()) as { messageId: string; redrive?: string }
    return { ...keyedLetter(row), redrive: output.redrive ?? null, serial: output.messageId.slice(-9) }
  })
}

/** Letters of keys that are pending now. */
export const waitingIn = async (db: Database): Promise<KeyedLetter[]> =>
  (await read<LetterRow>(db, PENDING_OF_KEYS)).map(keyedLetter)

const SHARED_CASES = sql(
  'test.sharedCases',
  'SELECT case_id FROM bartleby.items WHERE case_id IS NOT NULL GROUP BY case_id HAVING count(*) > 1',
)

/** Letters that have two items. */
export const doubledIn = async (db: Database): Promise<string[]> =>
  (await read<{ case_id: Integer }>(db, SHARED_CASES)).map(({ case_id }) => String(case_id))

const OF_RETRIES = `series IN (SELECT id FROM bartleby.history_series WHERE operation = 'retry')`

const COUNT_SENT = sql(
  'test.countSent',
  `SELECT (SELECT count(*) FROM bartleby.items WHERE case_id IS NOT NULL) AS items,
     (SELECT count(DISTINCT case_id) FROM bartleby.items) AS cases,
     (SELECT count(*) FROM bartleby.letters WHERE resolution = 'retry' AND redrive IS NOT NULL) AS letters,
     (SELECT count(*) FROM bartleby.history WHERE ${OF_RETRIES}) AS retries,
     (SELECT count(DISTINCT letter_id) FROM bartleby.history WHERE ${OF_RETRIES}) AS retried,
     (SELECT count(*) FROM (
        SELECT items.id AS serial, lag(items.id) OVER (PARTITION BY engine, instance_id ORDER BY captured_at, letters.id) AS before
        FROM bartleby.items JOIN bartleby.letters ON letters.id = case_id WHERE instance_id IS NOT NULL
      ) AS pairs WHERE before > serial) AS overtakers`,
)

/**
 * Items of letters and letters that have one; letters that a redrive sent; rows of history that say so, and their letters. `overtakers`
 * have an item that lies before that of an earlier letter of their key.
 */
export type SentCounts = Readonly<
  Record<'items' | 'cases' | 'letters' | 'retries' | 'retried' | 'overtakers', number>
>

export async function countSent(db: Database): Promise<SentCounts> {
  const [row] = await read<Record<keyof SentCounts, Integer>>(db, COUNT_SENT)
  return {
    items: Number(row?.items),
    cases: Number(row?.cases),
    letters: Number(row?.letters),
    retries: Number(row?.retries),
    retried: Number(row?.retried),
    overtakers: Number(row?.overtakers),
  }
}
