/**
 * What the office reads and writes in a table of messages: the rows that it has to be told of, and the way back of their
 * letters. Whatever it does to a row leaves the mark that it must be told, except starting over: a clerk compares the row
 * with its letter later and takes the mark off, so that a crash between two databases is put right.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { digestIn } from '../../../letters/contents.ts'
import type { LetterId } from '../../../letters/letter.ts'
import type { Integer, Session, Statement } from '../../../store/database.ts'
import { asText, isTrue, type Layout, perLayout, type Stored } from '../table/layout.ts'
import type { ColumnName } from '../table/table-names.ts'
import { givenRows, givenValues, idList, inIdList, isGiven, updateEach } from './by-id.ts'

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
  /** Of its payload, in hexadecimal digits. */
  readonly digest: string
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

/** The same, with the digest of the payload that the letter would be sent with. */
export interface RowToSend extends RowOfLetter {
  readonly digest: string
}

/** The rows of one table, for the office. */
export const letterRowsOf = perLayout((layout: Layout) => ({
  ...readsOf(layout),
  ...returnsOf(layout),
  ...batchWritesOf(layout),
}))
export type LetterRows = ReturnType<typeof letterRowsOf>

function readsOf(layout: Layout) {
  const { c, sqlTable: table } = layout
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
  const standing = `${place}, ${digestIn(layout.payloadBytes())} AS digest`
  /** By primary key; locks are taken in the order of ids. */
  const byId = (verb: string, facts: string, locking = ''): Statement =>
    layout.statement(verb, `SELECT ${facts} FROM ${table} WHERE ${inIdList(layout)} ${locking}`, {
      bigints: true,
    })
  const locked = `ORDER BY ${table}.${c.id} FOR UPDATE`
  const rowsOf = (statement: Statement) => async (session: Session, ids: readonly string[]) => {
    if (ids.length === 0) return []
    const stored = await session.rows<Stored<OutboxRow>>(statement, idList(layout, ids))
    const found = new Map(stored.map((row) => [row.id, toRow(row)]))
    return ids.flatMap((id) => found.get(id) ?? [])
  }
  const lockStanding = byId('lockStandingOfLetters', standing, locked)
  const gone = layout.statement(
    'goneForLetters',
    `SELECT ${asText('given.id')} AS id FROM ${givenRows(layout, KEYED)} WHERE NOT EXISTS (
       SELECT 1 FROM ${table} AS message WHERE ${isGiven(layout, `message.${c.id}`)} AND ${keyOf(layout, 'message')} = given.key)`,
  )
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
    /** Where rows stand, by their ids, locked until the transaction ends; those that are gone are left out. */
    async lockStanding(session: Session, ids: readonly string[]): Promise<ReadonlyMap<string, StandingRow>> {
      type Row = Stored<Place> & { readonly digest: Uint8Array }
      const stored = await session.rows<Row>(lockStanding, idList(layout, ids))
      const digestOf = ({ digest }: Row) => Buffer.from(digest).toString('hex')
      return new Map(stored.map((row) => [row.id, { ...toPlace(row), digest: digestOf(row) }]))
    },
    /** Those of the rows that are gone, by their ids; another message may have the id by now. */
    async gone(session: Session, rows: readonly RowOfLetter[]): Promise<ReadonlySet<string>> {
      const given = rows.map(({ id, key }) => ({ id, key }))
      const found = await session.rows<{ id: string }>(gone, ...givenValues(layout, KEYED, given))
      return new Set(found.map(({ id }) => id))
    },
  }
}

const KEYED = { key: 'text' } as const

/** The key of a message. Tables of others may have none. */
const keyOf = ({ c }: Layout, table: string): string =>
  `coalesce(${asText(`${table}.${c.idempotencyKey}`)}, '')`

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
  const { c, sqlTable: table } = layout
  const createdAt = layout.micros('createdAt', `${table}.${c.createdAt}`)
  /** Due at a time that is past by every clock, and not as fresh rows: dispatchers look for fresh ones from where they have been. */
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
    /** Rows start over, due at once, where they are dead and have the payload of their letter; gives how many. */
    startDead(session: Session, rows: readonly RowToSend[]): Promise<number> {
      const given = rows.map(({ id, letterId: letter, key, digest }) => ({ id, letter, key, digest }))
      return session.run(startDead.statement, ...startDead.values(given))
    },
    /** Rows start over, due at once, whatever they are; with another payload when one is given. */
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
  const layBack = move(
    'layBack',
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
    /** Takes the mark off, where the row is still as it was. */
    async unmark(session: Session, rows: readonly ReconciledRow[]): Promise<void> {
      const given = rows.map(({ row, letterId: letter }) => {
        const { id, deadAt: dead, isProcessed: processed } = row
        return { id, letter, dead, processed }
      })
      if (rows.length > 0) await session.run(unmark.statement, ...unmark.values(given))
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
