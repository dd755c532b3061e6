/**
 * What the office reads and writes in a table of messages. Every change except starting over leaves the mark
 * `letter_due`: the clerk compares row and letter later and removes it, which repairs a crash between two databases.
 */
import type { Instant } from '../../../core/clock.ts'
import { storedPayload } from '../../../core/content.ts'
import { digestIn } from '../../../letters/contents.ts'
import type { LetterId } from '../../../letters/letter.ts'
import type { Integer, Session, Statement } from '../../../store/database.ts'
import { at, integer, orNull, type RowOf, rowShape, text } from '../../../store/row.ts'
import { asText, isTrue, type Layout, perLayout } from '../table/layout.ts'
import { type ColumnName, snakeCase } from '../table/table-names.ts'
import { givenRows, givenValues, idList, inIdList, isGiven, updateEach } from './by-id.ts'

/** Legacy rows may lack anything. */
const textOrEmpty = (value: string | null): string => value ?? ''
const textOrNull = (value: string | null): string | null => value

/** The state of a row, without large columns. */
const STATE = {
  id: text,
  key: textOrEmpty,
  retryCount: integer,
  deadAt: orNull(at),
  isProcessed: isTrue,
  claimedUntil: orNull(at),
  letterDue: isTrue,
} as const

const ROW = rowShape({
  ...STATE,
  tenantId: textOrEmpty,
  eventType: textOrEmpty,
  payload: storedPayload,
  createdAt: (value: Integer | null) => at(value ?? 0),
  orderingKey: textOrNull,
  /** As JSON. */
  headers: textOrNull,
  correlationId: textOrNull,
  error: textOrNull,
  /** Failures before the last, the oldest first; as JSON. */
  earlierFailures: textOrNull,
})
export type OutboxRow = RowOf<typeof ROW>

/** With the digest of its payload, in hex. */
const DIGESTED_ROW = rowShape({ ...STATE, digest: (value: Uint8Array) => Buffer.from(value).toString('hex') })
export type DigestedRow = RowOf<typeof DIGESTED_ROW>

/** A row with the mark. */
export interface DueRow {
  readonly id: string
  readonly payloadBytes: number
}

export interface ReconciledRow {
  readonly row: OutboxRow
  readonly letterId: LetterId | null
}

/** The row that a letter came from. A row with another key is another message. */
export interface RowOfLetter {
  readonly letterId: LetterId
  readonly id: string
  readonly key: string
}

export const letterRowsOf = perLayout((layout: Layout) => ({
  ...readsOf(layout),
  ...returnsOf(layout),
  ...batchWritesOf(layout),
}))
export type LetterRows = ReturnType<typeof letterRowsOf>

function readsOf(layout: Layout) {
  const { c, sqlTable: table } = layout
  /** On the index of marked rows, which holds nothing else. The bare name would sort by the text. */
  const dueRows = (verb: string, behind: string): Statement =>
    layout.statement(
      verb,
      `SELECT ${asText(c.id)} AS id, octet_length(${layout.payloadBytes()}) AS bytes FROM ${table}
       WHERE ${c.letterDue} ${behind} ORDER BY ${table}.${c.id} LIMIT $1`,
    )
  const firstDue = dueRows('firstLetterDue', '')
  const nextDue = dueRows('nextLetterDue', `AND ${c.id} > ${layout.typed('id', '$2')}`)
  const text = (column: ColumnName) => `${asText(c[column])} AS ${snakeCase(column)}`
  const time = (column: ColumnName) => `${layout.micros(column)} AS ${snakeCase(column)}`
  const state = `${text('id')}, ${asText(c.idempotencyKey)} AS key, coalesce(${c.retryCount}, 0) AS retry_count, ${time('deadAt')},
    ${c.processedAt} IS NOT NULL AS is_processed, ${time('claimedUntil')}, ${c.letterDue} AS letter_due`
  const whole = `${state}, ${text('tenantId')}, ${text('eventType')}, ${layout.payloadBytes()} AS payload, ${time('createdAt')},
    ${text('orderingKey')}, ${text('headers')}, ${text('correlationId')}, ${text('error')},
    ${layout.hasFailures ? text('earlierFailures') : 'NULL AS earlier_failures'}`
  const digested = `${state}, ${digestIn(layout.payloadBytes())} AS digest`
  const byId = (verb: string, facts: string, locking = ''): Statement =>
    layout.statement(verb, `SELECT ${facts} FROM ${table} WHERE ${inIdList(layout)} ${locking}`, {
      bigints: true,
    })
  const locked = `ORDER BY ${table}.${c.id} FOR UPDATE`
  const rowsOf = (statement: Statement) => async (session: Session, ids: readonly string[]) => {
    if (ids.length === 0) return []
    const rows = await ROW.all(session, statement, idList(layout, ids))
    const found = new Map(rows.map((row) => [row.id, row]))
    return ids.flatMap((id) => found.get(id) ?? [])
  }
  const lockStates = byId('lockStatesOfLetters', digested, locked)
  const gone = layout.statement(
    'goneForLetters',
    `SELECT ${asText('given.id')} AS id FROM ${givenRows(layout, KEYED)} WHERE NOT EXISTS (
       SELECT 1 FROM ${table} AS message WHERE ${isGiven(layout, `message.${c.id}`)} AND ${keyOf(layout, 'message')} = given.key)`,
  )
  return {
    /** The next marked rows behind `after`. */
    async due(session: Session, after: string | null, limit: number): Promise<readonly DueRow[]> {
      type Row = { readonly id: string; readonly bytes: Integer | null }
      const rows = await (after === null
        ? session.rows<Row>(firstDue, limit)
        : session.rows<Row>(nextDue, limit, after))
      return rows.map(({ id, bytes }) => ({ id, payloadBytes: Number(bytes ?? 0) }))
    },
    /** In the order given; rows that are gone are left out. */
    read: rowsOf(byId('readForLetters', whole)),
    lock: rowsOf(byId('lockForLetters', whole, locked)),
    /** By id, locked until the transaction ends; rows that are gone are left out. */
    async lockStates(session: Session, ids: readonly string[]): Promise<ReadonlyMap<string, DigestedRow>> {
      const rows = await DIGESTED_ROW.all(session, lockStates, idList(layout, ids))
      return new Map(rows.map((row) => [row.id, row]))
    },
    /** Ids of rows that are gone; another message may have the id by now. */
    async gone(session: Session, rows: readonly RowOfLetter[]): Promise<ReadonlySet<string>> {
      const given = rows.map(({ id, key }) => ({ id, key }))
      const found = await session.rows<{ id: string }>(gone, ...givenValues(layout, KEYED, given))
      return new Set(found.map(({ id }) => id))
    },
  }
}

const KEYED = { key: 'text' } as const

/** Legacy rows may have no key. */
const keyOf = ({ c }: Layout, table: string): string =>
  `coalesce(${asText(`${table}.${c.idempotencyKey}`)}, '')`

function returnsOf(layout: Layout) {
  const { c, sqlTable: table } = layout
  const createdAt = layout.micros('createdAt', `${table}.${c.createdAt}`)
  /** Due in the past by every clock, and not as fresh rows, which dispatchers look for from where they have been. */
  const startedOver = `${c.deadAt} = NULL, ${c.processedAt} = NULL, ${c.error} = NULL, ${c.retryCount} = 0, ${unclaimed(layout)},
     ${c.nextAttemptAt} = ${layout.time('nextAttemptAt', `coalesce(${createdAt}, 0)`)},
     ${c.letterId} = given.letter, ${c.letterDue} = false${layout.processedFlag(false)}${layout.hasFailures ? `, ${c.earlierFailures} = NULL` : ''}`
  const payload = `${table}.${c.payload}`
  const startDead = updateEach(layout, 'startDead', {
    given: { letter: 'bigint', key: 'text', digest: 'text' },
    others: 0,
    set: startedOver,
    where: `${keyOf(layout, table)} = given.key AND ${table}.${c.deadAt} IS NOT NULL
       AND ${digestIn(layout.payloadBytes(payload))} = ${layout.bytesOfHex('given.digest')}`,
  })
  const startOver = updateEach(layout, 'startOver', {
    given: { letter: 'bigint', payload: 'text' },
    others: 0,
    set: `${startedOver}, ${c.payload} = coalesce(${layout.payloadFrom(layout.bytesOfHex('given.payload'))}, ${payload})`,
    where: 'true',
  })
  return {
    /** Rows that are dead and have the payload of their letter start over, due at once; gives how many. */
    startDead(
      session: Session,
      rows: readonly (RowOfLetter & { readonly digest: string })[],
    ): Promise<number> {
      const given = rows.map(({ id, letterId: letter, key, digest }) => ({ id, letter, key, digest }))
      return session.run(startDead.statement, ...startDead.values(given))
    },
    /** Rows start over in any state, due at once, with another payload when one is given. */
    async startOver(
      session: Session,
      rows: readonly (Omit<RowOfLetter, 'key'> & { readonly payload: Uint8Array | null })[],
    ): Promise<void> {
      const hex = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString('hex'))
      const given = rows.map(({ id, letterId: letter, payload }) => ({ id, letter, payload: hex(payload) }))
      await session.run(startOver.statement, ...startOver.values(given))
    },
  }
}

const unclaimed = ({ c }: Layout): string =>
  `${c.claimedUntil} = NULL, ${c.claimedBy} = NULL, ${c.claimCount} = 0`

function batchWritesOf(layout: Layout) {
  const { c, sqlTable: table } = layout
  const unmark = updateEach(layout, 'unmark', {
    given: { letter: 'bigint', dead: 'bigint', processed: 'boolean' },
    others: 0,
    set: `${c.letterDue} = false, ${c.letterId} = coalesce(given.letter, ${table}.${c.letterId})`,
    where: `${table}.${c.letterDue} AND ${layout.micros('deadAt', `${table}.${c.deadAt}`)} IS NOT DISTINCT FROM given.dead
       AND (${table}.${c.processedAt} IS NOT NULL) = given.processed`,
  })
  const processedAt = `${table}.${c.processedAt}`
  const key = layout.typed('idempotencyKey', 'given.key')
  const isDeadMessage = `${table}.${c.idempotencyKey} = ${key} AND ${table}.${c.deadAt} IS NOT NULL`
  const move = (verb: string, others: number, set: string, where: string) =>
    updateEach(layout, verb, {
      given: { letter: 'bigint', key: 'text' },
      others,
      set: `${set}, ${c.letterId} = given.letter, ${c.letterDue} = true`,
      where,
    })
  const takeBack = move(
    'takeBack',
    1,
    `${c.deadAt} = ${layout.time('deadAt', '$1')}, ${c.nextAttemptAt} = NULL, ${unclaimed(layout)}`,
    'true',
  )
  const giveUp = move(
    'giveUp',
    1,
    `${c.processedAt} = ${layout.time('processedAt', '$1')}${layout.processedFlag(true)}`,
    `${isDeadMessage} AND ${processedAt} IS NULL`,
  )
  const reinstate = move(
    'reinstate',
    0,
    `${c.processedAt} = NULL${layout.processedFlag(false)}`,
    `${isDeadMessage} AND ${processedAt} IS NOT NULL`,
  )
  const moveRows = async (
    session: Session,
    { statement, values }: ReturnType<typeof updateEach>,
    rows: readonly RowOfLetter[],
    ...at: readonly Instant[]
  ): Promise<void> => {
    const given = rows.map(({ id, key, letterId: letter }) => ({ id, key, letter }))
    if (rows.length > 0) await session.run(statement, ...at, ...values(given))
  }
  return {
    /** Removes the mark where the row is still as it was. */
    async unmark(session: Session, rows: readonly ReconciledRow[]): Promise<void> {
      const given = rows.map(({ row, letterId: letter }) => {
        const { id, deadAt: dead, isProcessed: processed } = row
        return { id, letter, dead, processed }
      })
      if (rows.length > 0) await session.run(unmark.statement, ...unmark.values(given))
    },
    /** Waiting rows are dead again. */
    takeBack: (session: Session, rows: readonly RowOfLetter[], now: Instant) =>
      moveRows(session, takeBack, rows, now),
    /** Dead rows no longer hold their lines. */
    giveUp: (session: Session, rows: readonly RowOfLetter[], now: Instant) =>
      moveRows(session, giveUp, rows, now),
    /** Rows that were given up are dead again and hold their lines. */
    reinstate: (session: Session, rows: readonly RowOfLetter[]) => moveRows(session, reinstate, rows),
  }
}
