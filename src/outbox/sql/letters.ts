/**
 * What the office reads and writes in a table of messages: the rows that it has to be told of, and the way back of their
 * letters. Whatever it does to a row leaves the mark that it must be told, except starting over: a clerk compares the row
 * with its letter later and takes the mark off, so that a crash between two databases is put right.
 */
import { type Instant, instant } from '../../core/clock.ts'
import { base64 } from '../../core/content.ts'
import type { Integer, Session, Statement } from '../../db/database.ts'
import { digestIn, digestOf } from '../../letters/contents.ts'
import type { LetterId } from '../../letters/letter.ts'
import { asText, isTrue, type Layout, perLayout, type Stored } from '../layout.ts'
import type { ColumnName } from '../table-names.ts'
import { givenList, hasValue, idList, inIdList, isNull, updateEach } from './by-id.ts'

/** Where a row stands, without what is large. */
interface Place {
  readonly id: string
  readonly key: string
  readonly retryCount: number
  readonly deadAt: Instant | null
  readonly isProcessed: boolean
  readonly claimedUntil: Instant | null
  readonly letterDue: boolean
}

export interface StandingRow extends Place {
  /** Of its payload, as `digestOf` has it. */
  readonly digest: string
}

/** A row that starts over; with another payload when one is given. */
export interface StartedRow {
  readonly id: string
  readonly letterId: LetterId
  readonly payload: Uint8Array | null
}

/** A row that the office has to be told of. */
export interface DueRow {
  readonly id: string
  readonly payloadBytes: number
}

/** A row as the office sees it. */
export interface OutboxRow extends Place {
  readonly tenantId: string
  readonly eventType: string
  readonly payload: Uint8Array
  readonly createdAt: Instant
  readonly orderingKey: string | null
  /** As JSON. */
  readonly headers: string | null
  readonly correlationId: string | null
  readonly error: string | null
  /** The failures before the last one, the oldest first; as JSON. */
  readonly earlierFailures: string | null
}

/** A row as it was when its letter was made to agree with it. */
export interface ReconciledRow {
  readonly row: OutboxRow
  /** null: it has none. */
  readonly letterId: LetterId | null
}

/** A letter and the row it came from. A row with another key is another message. */
export interface RowOfLetter {
  readonly letterId: LetterId
  readonly id: string
  readonly key: string
}

/** The rows of one table, for the office. */
export const letterRowsOf = perLayout((layout: Layout) => ({
  ...readsOf(layout),
  ...returnsOf(layout),
  ...batchWritesOf(layout),
}))
export type LetterRows = ReturnType<typeof letterRowsOf>

function readsOf(layout: Layout) {
  const { c, sqlTable: table, dialect } = layout
  /** On the index of what the office has to be told, which holds nothing else. Bare, the last `id` would be the text. */
  const dueRows = (verb: string, behind: string): Statement =>
    layout.statement(
      verb,
      `SELECT ${asText(c.id)} AS id, octet_length(${layout.payloadBytes()}) AS bytes FROM ${table}
       WHERE ${c.letterDue} ${behind} ORDER BY ${table}.${c.id} LIMIT $1`,
    )
  const firstDue = dueRows('firstLetterDue', '')
  const nextDue = dueRows('nextLetterDue', `AND ${c.id} > ${layout.typed('id', '$2')}`)
  const text = (column: ColumnName) => `${asText(c[column])} AS "${column}"`
  const time = (column: ColumnName) => `${layout.micros(column)} AS "${column}"`
  const place = `${text('id')}, ${asText(c.idempotencyKey)} AS key, coalesce(${c.retryCount}, 0) AS "retryCount", ${time('deadAt')},
    ${c.processedAt} IS NOT NULL AS "isProcessed", ${time('claimedUntil')}, ${c.letterDue} AS "letterDue"`
  const whole = `${place}, ${text('tenantId')}, ${text('eventType')}, ${layout.payloadBytes()} AS payload, ${time('createdAt')},
    ${text('orderingKey')}, ${text('headers')}, ${text('correlationId')}, ${text('error')},
    ${layout.hasFailures ? text('earlierFailures') : 'NULL AS "earlierFailures"'}`
  const standing = `${place}, ${digestIn(dialect, layout.payloadBytes())} AS digest`
  /** By primary key; locks are taken in the order of ids. */
  const byId = (verb: string, facts: string, locking = ''): Statement =>
    layout.statement(verb, `SELECT ${facts} FROM ${table} WHERE ${inIdList(layout)} ${locking}`, {
      bigints: true,
    })
  // In a transaction of SQLite nobody else writes.
  const locked = dialect === 'postgres' ? `ORDER BY ${table}.${c.id} FOR UPDATE` : ''
  const rowsOf = (statement: Statement) => async (session: Session, ids: readonly string[]) => {
    if (ids.length === 0) return []
    const stored = await session.rows<Stored<OutboxRow>>(statement, idList(layout, ids))
    const found = new Map(stored.map((row) => [row.id, toRow(row)]))
    return ids.flatMap((id) => found.get(id) ?? [])
  }
  const standingOf = (statement: Statement) => async (session: Session, ids: readonly string[]) => {
    if (ids.length === 0) return new Map<string, StandingRow>()
    type Row = Stored<Place> & { readonly digest: Uint8Array | null }
    const stored = await session.rows<Row>(statement, idList(layout, ids))
    return new Map(stored.map((row) => [row.id, { ...toPlace(row), digest: digestOf(dialect, row.digest) }]))
  }
  return {
    /** The next rows behind `after` that the office has to be told of. */
    async due(session: Session, after: string | null, limit: number): Promise<readonly DueRow[]> {
      type Row = { readonly id: string; readonly bytes: Integer | null }
      const rows = await (after === null
        ? session.rows<Row>(firstDue, limit)
        : session.rows<Row>(nextDue, limit, after))
      return rows.map(({ id, bytes }) => ({ id, payloadBytes: Number(bytes ?? 0) }))
    },
    /** Rows by id, in the order given; those that are gone are left out. */
    read: rowsOf(byId('readForLetters', whole)),
    /** The same, locked until the transaction ends. */
    lock: rowsOf(byId('lockForLetters', whole, locked)),
    /** Where rows stand, by their ids; those that are gone are left out. */
    standing: standingOf(byId('standingOfLetters', standing)),
    /** The same, locked until the transaction ends. */
    lockStanding: standingOf(byId('lockStandingOfLetters', standing, locked)),
  }
}

const toPlace = <Row extends Stored<Place>>(row: Row) => ({
  ...row,
  key: row.key ?? '',
  retryCount: Number(row.retryCount),
  deadAt: row.deadAt === null ? null : instant(BigInt(row.deadAt)),
  isProcessed: isTrue(row.isProcessed),
  claimedUntil: row.claimedUntil === null ? null : instant(BigInt(row.claimedUntil)),
  letterDue: isTrue(row.letterDue),
})

/** Tables of others may have nothing where there should be something. */
const toRow = (row: Stored<OutboxRow>): OutboxRow => ({
  ...toPlace(row),
  tenantId: row.tenantId ?? '',
  eventType: row.eventType ?? '',
  payload: row.payload ?? new Uint8Array(0),
  createdAt: instant(BigInt(row.createdAt ?? 0)),
})

function returnsOf(layout: Layout) {
  const { c, sqlTable: table, dialect } = layout
  /** Due at a time that is past by every clock, and not as fresh rows: dispatchers look for fresh ones from where they have been. */
  const startedOver = (letter: string, payload: string) =>
    `${c.deadAt} = NULL, ${c.processedAt} = NULL, ${c.error} = NULL, ${c.retryCount} = 0, ${unclaimed(layout)},
     ${c.nextAttemptAt} = ${layout.time('nextAttemptAt', `coalesce(${layout.micros('createdAt')}, 0)`)},
     ${c.letterId} = ${letter}, ${c.letterDue} = false,
     ${c.payload} = coalesce(${layout.payloadFrom(payload)}, ${c.payload})${layout.processedFlag(false)}${layout.hasFailures ? `, ${c.earlierFailures} = NULL` : ''}`
  /** What is given for a row: `$2` has a list for each id. Not a join: PostgreSQL would go through the list for every row. */
  const given = (place: number) => `($2::jsonb -> ${c.id}::text ->> ${place})`
  /** Rows by primary key; on SQLite one of them. */
  const startOver = layout.statement('startOver', {
    postgres: `UPDATE ${table} SET ${startedOver(`${given(0)}::bigint`, `decode(${given(1)}, 'base64')`)} WHERE ${inIdList(layout)}`,
    sqlite: `UPDATE ${table} SET ${startedOver('$2', '$3')} WHERE ${c.id} = $1`,
  })
  return {
    /** Rows start over, due at once. */
    async startOver(session: Session, rows: readonly StartedRow[]): Promise<void> {
      if (rows.length === 0) return
      if (dialect === 'sqlite') {
        const each = rows.map(({ id, letterId, payload }) => [id, letterId, payload])
        return session.runEach(startOver, each)
      }
      const given = rows.map(({ id, letterId, payload }) => [id, [String(letterId), base64(payload)]])
      const ids = idList(
        layout,
        rows.map(({ id }) => id),
      )
      await session.run(startOver, ids, JSON.stringify(Object.fromEntries(given)))
    },
  }
}

const unclaimed = ({ c }: Layout): string =>
  `${c.claimedUntil} = NULL, ${c.claimedBy} = NULL, ${c.claimCount} = 0`

function batchWritesOf(layout: Layout) {
  const { c, sqlTable: table, dialect } = layout
  const same = dialect === 'postgres' ? 'IS NOT DISTINCT FROM' : 'IS'
  const unmark = updateEach(layout, 'unmark', {
    given: { letter: 'bigint', dead: 'bigint', processed: 'boolean' },
    set: `${c.letterDue} = false, ${c.letterId} = coalesce(given.letter, ${table}.${c.letterId})`,
    where: `${table}.${c.letterDue} AND ${layout.micros('deadAt', `${table}.${c.deadAt}`)} ${same} given.dead
       AND (${table}.${c.processedAt} IS NOT NULL) = given.processed`,
  })
  const processedAt = `${table}.${c.processedAt}`
  const key = layout.typed('idempotencyKey', 'given.key')
  const isDeadMessage = `${table}.${c.idempotencyKey} = ${key} AND ${hasValue(dialect, `${table}.${c.deadAt}`)}`
  const move = (verb: string, set: string, where: string): Statement =>
    updateEach(layout, verb, {
      given: { letter: 'bigint', key: 'text' },
      set: `${set}, ${c.letterId} = given.letter, ${c.letterDue} = true`,
      where,
    })
  const takeBack = move(
    'takeBack',
    `${c.deadAt} = ${layout.time('deadAt', '$2')}, ${c.nextAttemptAt} = NULL, ${unclaimed(layout)}`,
    'true',
  )
  const giveUp = move(
    'giveUp',
    `${c.processedAt} = ${layout.time('processedAt', '$2')}${layout.processedFlag(true)}`,
    `${isDeadMessage} AND ${isNull(dialect, processedAt)}`,
  )
  const layBack = move(
    'layBack',
    `${c.processedAt} = NULL${layout.processedFlag(false)}`,
    `${isDeadMessage} AND ${hasValue(dialect, processedAt)}`,
  )
  const moveRows = async (
    session: Session,
    statement: Statement,
    rows: readonly RowOfLetter[],
    ...at: readonly Instant[]
  ): Promise<void> => {
    const given = rows.map(({ id, key, letterId: letter }) => ({ id, key, letter }))
    if (rows.length > 0) await session.run(statement, givenList(given), ...at)
  }
  return {
    /** Takes the mark off, where the row is still as it was. */
    async unmark(session: Session, rows: readonly ReconciledRow[]): Promise<void> {
      const given = rows.map(({ row, letterId: letter }) => {
        const { id, deadAt: dead, isProcessed: processed } = row
        return { id, letter, dead, processed }
      })
      if (rows.length > 0) await session.run(unmark, givenList(given))
    },
    /** Rows that were to be delivered are dead. */
    takeBack: (session: Session, rows: readonly RowOfLetter[], now: Instant) =>
      moveRows(session, takeBack, rows, now),
    /** Dead rows no longer hold their lines: nobody wants them delivered. */
    giveUp: (session: Session, rows: readonly RowOfLetter[], now: Instant) =>
      moveRows(session, giveUp, rows, now),
    /** Rows that were given up are dead and hold their lines again. */
    layBack: (session: Session, rows: readonly RowOfLetter[]) => moveRows(session, layBack, rows),
  }
}
