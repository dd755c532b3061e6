/** Idempotency keys: the first answer is kept in the transaction of its effect and replayed for a day. A failed call leaves nothing behind. */
import { hash } from 'node:crypto'
import { type Instant, later } from '../core/clock.ts'
import { type Integer, type Session, sql, type Transaction } from './database.ts'

export interface Moment {
  readonly tx: Transaction
  readonly now: Instant
}

/** `scope`: whose key, and for what. */
export interface OnceKey {
  readonly scope: string
  readonly key: string
}

export interface Answer<T = unknown> {
  readonly status: number
  readonly body: T
}

const KEPT_US = 24n * 3_600_000_000n

/** A path in a scope may be longer than an index key. */
const MAX_SCOPE = 256
export const scopeOf = ({ scope }: OnceKey): string =>
  scope.length > MAX_SCOPE ? `sha256 ${hash('sha256', scope, 'hex')}` : scope

/** Takes a key that is new or older than a day. An equal call waits here until the first has committed or failed. By primary key. */
const takeKey = sql(
  'idempotency.take',
  `INSERT INTO bartleby.idempotency_keys AS known (scope, key, answered_at, status, body) VALUES ($1, $2, $3, 0, '')
   ON CONFLICT (scope, key) DO UPDATE SET answered_at = excluded.answered_at, status = 0, body = ''
   WHERE known.answered_at < $4`,
)
const keepAnswer = sql(
  'idempotency.keep',
  'UPDATE bartleby.idempotency_keys SET status = $3, body = $4 WHERE scope = $1 AND key = $2',
)
const readAnswer = sql(
  'idempotency.read',
  'SELECT status, body FROM bartleby.idempotency_keys WHERE scope = $1 AND key = $2 AND answered_at >= $3',
)

/** Runs `act` unless the key has an answer. Call it first in a transaction. */
export async function answerOnce(
  { tx, now }: Moment,
  once: OnceKey | null,
  act: () => Promise<Answer>,
): Promise<Answer> {
  if (once === null) return act()
  const { key } = once
  const scope = scopeOf(once)
  const taken = await tx.run(takeKey, scope, key, now, later(now, -KEPT_US))
  if (taken === 0) {
    const known = await keptAnswer(tx, once, now)
    if (known === null) throw new Error('an idempotency key that is taken has no answer')
    return known
  }
  const answer = await act()
  await tx.run(keepAnswer, scope, key, answer.status, JSON.stringify(answer.body))
  return answer
}

/** For acts of more than one transaction. */
export async function keptAnswer(session: Session, once: OnceKey, now: Instant): Promise<Answer | null> {
  const [row] = await session.rows<{ status: Integer; body: string }>(
    readAnswer,
    scopeOf(once),
    once.key,
    later(now, -KEPT_US),
  )
  return row === undefined ? null : { status: Number(row.status), body: JSON.parse(row.body) }
}

/** By primary key. */
const removeKey = sql(
  'idempotency.drop',
  'DELETE FROM bartleby.idempotency_keys WHERE scope = $1 AND key = $2',
)

/** For a key whose act failed after it was taken. */
export async function dropKey(tx: Transaction, once: OnceKey): Promise<void> {
  await tx.run(removeKey, scopeOf(once), once.key)
}

/** Oldest first, by the index on their time. */
const removeKeys = sql(
  'idempotency.remove',
  `DELETE FROM bartleby.idempotency_keys WHERE (scope, key) IN (
     SELECT scope, key FROM bartleby.idempotency_keys WHERE answered_at < $1 ORDER BY answered_at LIMIT $2)`,
)

/** Removes keys older than a day; returns how many. */
export const forgetKeys = (tx: Transaction, now: Instant, limit: number): Promise<number> =>
  tx.run(removeKeys, later(now, -KEPT_US), limit)
