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
import {
  type Layout,
  layoutStatement,
  listType,
  microsOf,
  payloadFrom,
  payloadOf,
  quotedColumns,
  timeFrom,
} from '../layout.ts'
import { hasValue, idList, isNull } from './by-id.ts'

/** Where a row stands, without what is large. */
export interface StandingRow {
  readonly id: string
  readonly key: string
  readonly retryCount: number
  readonly deadAt: Instant | null
  readonly isProcessed: boolean
  readonly claimedUntil: Instant | null
  readonly letterDue: boolean
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
export interface OutboxRow extends Omit<StandingRow, 'digest'> {
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

/** A row of which the office was told, as it was then. */
export interface ToldRow {
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

export interface LetterRows {
  /** The next rows behind `after` that the office has to be told of. */
  due(session: Session, after: string | null, limit: number): Promise<readonly DueRow[]>
  /** Rows by id, in the order given; those that are gone are left out. */
  read(session: Session, ids: readonly string[]): Promise<readonly OutboxRow[]>
  /** The same, locked until the transaction ends. */
  lock(session: Session, ids: readonly string[]): Promise<readonly OutboxRow[]>
  /** Where rows stand, by their ids; those that are gone are left out. */
  standing(session: Session, ids: readonly string[]): Promise<ReadonlyMap<string, StandingRow>>
  /** The same, locked until the transaction ends. */
  lockStanding(session: Session, ids: readonly string[]): Promise<ReadonlyMap<string, StandingRow>>
  /** Takes the mark off, where the row is still what the office was told. */
  told(session: Session, rows: readonly ToldRow[]): Promise<void>
  /** Rows start over, due at once. */
  startOver(session: Session, rows: readonly StartedRow[]): Promise<void>
  /** A row that was to be delivered is dead. */
  takeBack(session: Session, row: Pick<StandingRow, 'id'>, letterId: LetterId, now: Instant): Promise<void>
  /** Dead rows no longer hold their lines: nobody wants them delivered. */
  giveUp(session: Session, rows: readonly RowOfLetter[], now: Instant): Promise<void>
  /** Rows that were given up are dead and hold their lines again. */
  layBack(session: Session, rows: readonly RowOfLetter[]): Promise<void>
}

const known = new WeakMap<Layout, LetterRows>()

/** The rows of one table, for the office. */
export function letterRowsOf(layout: Layout): LetterRows {
  const rows = known.get(layout) ?? {
    ...readsOf(layout),
    ...returnsOf(layout),
    ...batchWritesOf(layout),
  }
  known.set(layout, rows)
  return rows
}

function readsOf(layout: Layout): Pick<LetterRows, 'due' | 'read' | 'lock' | 'standing' | 'lockStanding'> {
  const c = quotedColumns(layout)
  const { sqlTable: table, types } = layout
  /** On the index of what the office has to be told, which holds nothing else. Bare, the last `id` would be the text. */
  const dueRows = (verb: string, behind: string): Statement =>
    layoutStatement(layout, verb, {
      postgres: `SELECT ${c.id}::text AS id, octet_length(${payloadOf(layout)}) AS bytes FROM ${table}
        WHERE ${c.letterDue} ${behind} ORDER BY ${table}.${c.id} LIMIT $1`,
      sqlite: `SELECT CAST(${c.id} AS TEXT) AS id, length(${payloadOf(layout)}) AS bytes FROM ${table}
        WHERE ${c.letterDue} ${behind} ORDER BY ${table}.${c.id} LIMIT $1`,
    })
  const firstDue = dueRows('firstLetterDue', '')
  const nextDue = dueRows(
    'nextLetterDue',
    `AND ${c.id} > ${layout.dialect === 'postgres' ? `$2::text::${types.id}` : '$2'}`,
  )
  const text = (column: string) =>
    layout.dialect === 'postgres' ? `${column}::text` : `CAST(${column} AS TEXT)`
  const place = `${text(c.id)} AS id, ${text(c.idempotencyKey)} AS key, coalesce(${c.retryCount}, 0) AS retries,
    ${microsOf(layout, 'deadAt')} AS dead, ${c.processedAt} IS NOT NULL AS processed, ${microsOf(layout, 'claimedUntil')} AS claimed,
    ${c.letterDue} AS due`
  const whole = `${place}, ${text(c.tenantId)} AS tenant, ${text(c.eventType)} AS type, ${payloadOf(layout)} AS payload,
    ${microsOf(layout, 'createdAt')} AS created, ${text(c.orderingKey)} AS line, ${text(c.headers)} AS headers,
    ${text(c.correlationId)} AS correlation, ${text(c.error)} AS error,
    ${layout.hasFailures ? text(c.earlierFailures) : 'NULL'} AS earlier`
  const standing = `${place}, ${digestIn(layout.dialect, payloadOf(layout))} AS digest`
  /** By primary key; locks are taken in the order of ids. */
  const byId = (verb: string, facts: string, locking: string): Statement =>
    layoutStatement(
      layout,
      verb,
      {
        postgres: `SELECT ${facts} FROM ${table} WHERE ${c.id} = ANY($1::text[]::${listType(layout, 'id')}) ${locking}`,
        sqlite: `SELECT ${facts} FROM ${table} WHERE ${c.id} IN (SELECT value FROM json_each($1))`,
      },
      { bigints: true },
    )
  const locked = `ORDER BY ${table}.${c.id} FOR UPDATE`
  const plain = byId('readForLetters', whole, '')
  const locking = byId('lockForLetters', whole, locked)
  const standingPlain = byId('standingOfLetters', standing, '')
  const standingLocking = byId('lockStandingOfLetters', standing, locked)
  const rowsOf = (statement: Statement) => async (session: Session, ids: readonly string[]) => {
    if (ids.length === 0) return []
    const stored = await session.rows<StoredRow>(statement, idList(layout, ids))
    const found = new Map(stored.map((row) => [row.id, toRow(row)]))
    return ids.flatMap((id) => found.get(id) ?? [])
  }
  const standingOf = (statement: Statement) => async (session: Session, ids: readonly string[]) => {
    if (ids.length === 0) return new Map<string, StandingRow>()
    type Row = StoredPlace & { readonly digest: Uint8Array | null }
    const stored = await session.rows<Row>(statement, idList(layout, ids))
    return new Map(
      stored.map((row) => [row.id, { ...toPlace(row), digest: digestOf(layout.dialect, row.digest) }]),
    )
  }
  return {
    standing: standingOf(standingPlain),
    lockStanding: standingOf(standingLocking),
    async due(session, after, limit) {
      type Row = { readonly id: string; readonly bytes: Integer | null }
      const rows = await (after === null
        ? session.rows<Row>(firstDue, limit)
        : session.rows<Row>(nextDue, limit, after))
      return rows.map(({ id, bytes }) => ({ id, payloadBytes: Number(bytes ?? 0) }))
    },
    read: rowsOf(plain),
    lock: rowsOf(locking),
  }
}

interface StoredPlace {
  readonly id: string
  readonly key: string | null
  readonly retries: Integer
  readonly dead: Integer | null
  readonly processed: boolean | Integer
  readonly claimed: Integer | null
  readonly due: boolean | Integer
}

interface StoredRow extends StoredPlace {
  readonly tenant: string | null
  readonly type: string | null
  readonly payload: Uint8Array | null
  readonly created: Integer | null
  readonly line: string | null
  readonly headers: string | null
  readonly correlation: string | null
  readonly error: string | null
  readonly earlier: string | null
}

const toPlace = (row: StoredPlace): Omit<StandingRow, 'digest'> => ({
  id: row.id,
  key: row.key ?? '',
  retryCount: Number(row.retries),
  deadAt: row.dead === null ? null : instant(BigInt(row.dead)),
  isProcessed: isTrue(row.processed),
  claimedUntil: row.claimed === null ? null : instant(BigInt(row.claimed)),
  letterDue: isTrue(row.due),
})

const toRow = (row: StoredRow): OutboxRow => ({
  ...toPlace(row),
  tenantId: row.tenant ?? '',
  eventType: row.type ?? '',
  payload: row.payload ?? new Uint8Array(0),
  createdAt: instant(BigInt(row.created ?? 0)),
  orderingKey: row.line,
  headers: row.headers,
  correlationId: row.correlation,
  error: row.error,
  earlierFailures: row.earlier,
})

const isTrue = (value: boolean | Integer): boolean => value === true || Number(value) === 1

/** The flag of tables that have one beside the time of processing. */
const flag = ({ hasFlag }: Layout, column: string, value: boolean): string =>
  hasFlag ? `, ${column} = ${value}` : ''

function returnsOf(layout: Layout): Pick<LetterRows, 'startOver' | 'takeBack'> {
  const c = quotedColumns(layout)
  const { sqlTable: table, dialect } = layout
  const UNCLAIMED = `${c.claimedUntil} = NULL, ${c.claimedBy} = NULL, ${c.claimCount} = 0`
  /** Due at a time that is past by every clock, and not as fresh rows: dispatchers look for fresh ones from where they have been. */
  const startedOver = (letter: string, payload: string) =>
    `${c.deadAt} = NULL, ${c.processedAt} = NULL, ${c.error} = NULL, ${c.retryCount} = 0, ${UNCLAIMED},
     ${c.nextAttemptAt} = ${timeFrom(layout, 'nextAttemptAt', `coalesce(${microsOf(layout, 'createdAt')}, 0)`)},
     ${c.letterId} = ${letter}, ${c.letterDue} = false,
     ${c.payload} = coalesce(${payloadFrom(layout, payload)}, ${c.payload})${flag(layout, c.isProcessed, false)}${layout.hasFailures ? `, ${c.earlierFailures} = NULL` : ''}`
  /** What is given for a row: `$2` has a list for each id. Not a join: PostgreSQL would go through the list for every row. */
  const given = (place: number) => `($2::jsonb -> ${c.id}::text ->> ${place})`
  /** Rows by primary key; on SQLite one of them. */
  const startOver = layoutStatement(layout, 'startOver', {
    postgres: `UPDATE ${table} SET ${startedOver(`${given(0)}::bigint`, `decode(${given(1)}, 'base64')`)}
      WHERE ${c.id} = ANY($1::text[]::${listType(layout, 'id')})`,
    sqlite: `UPDATE ${table} SET ${startedOver('$2', '$3')} WHERE ${c.id} = $1`,
  })
  const id = dialect === 'postgres' ? `$1::text::${layout.types.id}` : '$1'
  /** One row by primary key. */
  const takeBack = layoutStatement(
    layout,
    'takeBack',
    `UPDATE ${layout.sqlTable} SET ${c.deadAt} = ${timeFrom(layout, 'deadAt', '$3')}, ${c.nextAttemptAt} = NULL, ${UNCLAIMED},
       ${c.letterId} = $2, ${c.letterDue} = true
     WHERE ${c.id} = ${id}`,
  )
  return {
    async startOver(session, rows) {
      if (rows.length === 0) return
      if (dialect === 'sqlite') {
        const each = rows.map(({ id, letterId, payload }) => [id, letterId, payload])
        return session.runEach(startOver, each)
      }
      const given = rows.map(({ id, letterId, payload }) => [id, [digits(letterId), base64(payload)]])
      const ids = idList(
        layout,
        rows.map(({ id }) => id),
      )
      await session.run(startOver, ids, JSON.stringify(Object.fromEntries(given)))
    },
    async takeBack(session, row, letter, now) {
      await session.run(takeBack, row.id, letter, now)
    },
  }
}

/** A row in the parameter of a batch. What a statement does not compare is null. */
interface GivenRow {
  readonly id: string
  readonly letter: string | null
  readonly key: string | null
  readonly dead: string | null
  readonly processed: boolean | null
}

function batchWritesOf(layout: Layout): Pick<LetterRows, 'told' | 'giveUp' | 'layBack'> {
  const c = quotedColumns(layout)
  const { sqlTable: table, types, dialect } = layout
  const whole = /int/.test(types.id)
  /** Rows by primary key, which the list of ids insists on: a join alone may read all messages. */
  const each = (verb: string, set: string, where: string): Statement =>
    layoutStatement(layout, verb, {
      postgres: `UPDATE ${table} SET ${set}
        FROM jsonb_to_recordset($1::jsonb) AS given (id text, letter bigint, key text, dead bigint, processed boolean)
        WHERE ${table}.${c.id} = given.id::${types.id} AND ${where}
          AND ${table}.${c.id} = ANY(ARRAY(SELECT each.id::${types.id} FROM jsonb_to_recordset($1::jsonb) AS each (id text)))`,
      sqlite: `UPDATE ${table} SET ${set}
        FROM (SELECT ${whole ? "CAST(value ->> 'id' AS INTEGER)" : "value ->> 'id'"} AS id, CAST(value ->> 'letter' AS INTEGER) AS letter,
          value ->> 'key' AS key, CAST(value ->> 'dead' AS INTEGER) AS dead, value ->> 'processed' AS processed FROM json_each($1)) AS given
        WHERE ${table}.${c.id} = given.id AND ${where}`,
    })
  const same = dialect === 'postgres' ? 'IS NOT DISTINCT FROM' : 'IS'
  const told = each(
    'told',
    `${c.letterDue} = false, ${c.letterId} = coalesce(given.letter, ${table}.${c.letterId})`,
    `${table}.${c.letterDue} AND ${microsOf(layout, 'deadAt', `${table}.${c.deadAt}`)} ${same} given.dead
       AND (${table}.${c.processedAt} IS NOT NULL) = given.processed`,
  )
  const key = dialect === 'postgres' ? `given.key::${types.idempotencyKey}` : 'given.key'
  const isDeadMessage = `${table}.${c.idempotencyKey} = ${key} AND ${hasValue(dialect, `${table}.${c.deadAt}`)}`
  const processedAt = `${table}.${c.processedAt}`
  const giveUp = each(
    'giveUp',
    `${c.processedAt} = ${timeFrom(layout, 'processedAt', '$2')}, ${c.letterId} = given.letter, ${c.letterDue} = true${flag(layout, c.isProcessed, true)}`,
    `${isDeadMessage} AND ${isNull(dialect, processedAt)}`,
  )
  const layBack = each(
    'layBack',
    `${c.processedAt} = NULL, ${c.letterId} = given.letter, ${c.letterDue} = true${flag(layout, c.isProcessed, false)}`,
    `${isDeadMessage} AND ${hasValue(dialect, processedAt)}`,
  )
  return {
    async told(session, rows) {
      const given = rows.map(({ row, letterId: letter }) => ({
        id: row.id,
        letter: digits(letter),
        key: null,
        dead: digits(row.deadAt),
        processed: row.isProcessed,
      }))
      if (rows.length > 0) await session.run(told, listOf(given))
    },
    async giveUp(session, rows, now) {
      if (rows.length > 0) await session.run(giveUp, listOf(rows.map(toGiven)), now)
    },
    async layBack(session, rows) {
      if (rows.length > 0) await session.run(layBack, listOf(rows.map(toGiven)))
    },
  }
}

/** As text: JSON numbers would lose the digits beyond 2^53. */
const digits = (value: bigint | null): string | null => value?.toString() ?? null

const toGiven = ({ letterId: letter, id, key }: RowOfLetter): GivenRow => ({
  id,
  letter: digits(letter),
  key,
  dead: null,
  processed: null,
})

const listOf = (rows: readonly GivenRow[]): string =>
  JSON.stringify(rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
