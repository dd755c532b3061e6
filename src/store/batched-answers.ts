/**
 * Calls that share a transaction and replay their first answer under an idempotency key. Calls that arrive during a transaction share the
 * next one; one that fails is tried again alone, so that it fails nobody else.
 */
import { Batcher, type BatcherOptions } from '../core/batcher.ts'
import { type Dialect, StoreUnavailable, sql } from './database.ts'
import { type Answer, dropKey, keptAnswer, type Moment, type OnceKey, scopeOf } from './idempotency.ts'
import { filledUp, rowsGiven, runGivenAtCommit } from './idioms.ts'

export interface Ask {
  readonly once: OnceKey | null
}

/** Per transaction: about 16 MB, or a thousand letters. */
const MOST_WEIGHT = 16_000_000
const WEIGHT_OF_ROW = 16_000
/**
 * Rows that SQLite writes in one turn of the event loop: some 15 ms. A shared transaction ends within a turn, because another connection
 * of this process that waits for the file would block the thread.
 */
export const ROWS_OF_TURN = 200

/** About the bytes of a row, and a cost per row. */
export const weightOf = (...parts: readonly (string | Uint8Array | null | undefined)[]): number =>
  parts.reduce((sum, part) => sum + (part?.length ?? 0), WEIGHT_OF_ROW)

interface Acting<One, Work extends Moment, Seen> {
  within<T>(act: (work: Work) => Promise<T>): Promise<T>
  /** Reads in one round trip with the lookup of keys. */
  look(work: Work, asks: readonly One[]): Promise<Seen>
  /** One answer per ask, in order. */
  act(work: Work, asks: readonly One[], seen: Seen): Promise<readonly Answer[]>
}

/** The weight of a call is that of its rows. */
export const batchAnswers = <One extends Ask, Work extends Moment, Seen>(
  dialect: Dialect,
  acting: Acting<One, Work, Seen>,
  options: Pick<BatcherOptions<One>, 'subjectsOf' | 'mostOfSubject'> = {},
): Batcher<One, Answer> =>
  new Batcher((asks) => acting.within((work) => answerEachOnce(work, asks, acting)), {
    ...options,
    // The next is prepared while PostgreSQL works on one.
    atOnce: dialect === 'postgres' ? 2 : 1,
    mostWeight: dialect === 'sqlite' ? ROWS_OF_TURN * WEIGHT_OF_ROW : MOST_WEIGHT,
    meetsAll: (error) => error instanceof StoreUnavailable,
  })

/** One step into the primary key each. */
const readKnownKeys = sql(
  'idempotency.known',
  `SELECT given.scope AS scope, given.key AS key FROM unnest($1::text[], $2::text[]) AS given (scope, key)
   WHERE (SELECT 1 FROM bartleby.idempotency_keys AS known
     WHERE known.scope = given.scope AND known.key = given.key) IS NOT NULL`,
)
/** An equal call at the same moment waits here, fails, runs again and finds the answer. */
const insertAnswers = sql(
  'idempotency.insertAll',
  `INSERT INTO bartleby.idempotency_keys (scope, key, status, body, answered_at)
   SELECT given.scope, given.key, given.status, given.body, $5
   FROM unnest($1::text[], $2::text[], $3::int[], $4::text[]) AS given (scope, key, status, body)`,
)

/** Performs calls whose keys have no answer, each key once; returns the answers of all. */
async function answerEachOnce<One extends Ask, Work extends Moment, Seen>(
  work: Work,
  asks: readonly One[],
  { look, act }: Pick<Acting<One, Work, Seen>, 'look' | 'act'>,
): Promise<readonly Answer[]> {
  const { tx, now } = work
  // A call without a key is unique.
  const names = asks.map(({ once }, place) => (once === null ? place : keyName(once)))
  const first = new Map<string | number | undefined, One>()
  for (const [i, ask] of asks.entries()) if (!first.has(names[i])) first.set(names[i], ask)
  const keys = [...first.values()].flatMap(({ once }) => once ?? [])
  const answers = new Map<string | number | undefined, Answer>()
  const [known, seen] = await Promise.all([
    rowsGiven<OnceKey>(tx, readKnownKeys, filledUp(tx, keys.map(keyRow))),
    look(work, asks),
  ])
  for (const key of known) {
    const answer = await keptAnswer(tx, key, now)
    if (answer === null) await dropKey(tx, key)
    else answers.set(keyName(key), answer)
  }
  const fresh = [...first].filter(([name]) => !answers.has(name))
  const made =
    fresh.length === 0
      ? []
      : await act(
          work,
          fresh.map(([, ask]) => ask),
          seen,
        )
  const kept = fresh.flatMap(([name, { once }], i) => {
    const answer = made[i]
    if (answer === undefined) throw new Error('a call has no answer')
    answers.set(name, answer)
    return once === null ? [] : { ...keyRow(once), status: answer.status, body: JSON.stringify(answer.body) }
  })
  // In one order for all writers.
  kept.sort((a, b) => (keyName(a) < keyName(b) ? -1 : 1))
  runGivenAtCommit(tx, insertAnswers, kept, now)
  return names.flatMap((name) => answers.get(name) ?? [])
}

const keyRow = (once: OnceKey) => ({ scope: scopeOf(once), key: once.key })

/** No key has a space. */
const keyName = (once: OnceKey): string => `${once.key} ${scopeOf(once)}`
