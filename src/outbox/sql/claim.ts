/**
 * Claiming: messages that are due become this dispatcher's for a while, in one short transaction.
 *
 * Up to half of a claim are rows that are due again (retries and lapsed claims), by the time they came due; the rest are
 * fresh ones in the order of creation: neither a storm of retries nor a flood of new messages starves the other.
 * A row with an ordering key is taken only together with all rows before it in its line, and only while nobody has
 * another one of the line: one that was committed late may stand before a row that is being delivered. A row that cannot be
 * taken is *parked*: it leaves the front of the index until the line moves on (line.ts), so that a long line behind a
 * message that waits or is dead costs nothing.
 */
import { randomUUID } from 'node:crypto'
import { type Instant, instant } from '../../core/clock.ts'
import type { Database, Integer, Session, Transaction } from '../../db/database.ts'
import {
  dueBounds,
  dueOf,
  type Layout,
  layoutStatement,
  listType,
  microsOf,
  payloadOf,
  pendingOf,
  quotedColumns,
  timeFrom,
} from '../layout.ts'
import type { ClaimedMessage } from '../message.ts'
import type { Line } from './line.ts'

export interface ClaimRequest {
  readonly now: Instant
  readonly claimedBy: string
  readonly claimedUntil: Instant
  readonly limit: number
  /** Fresh rows that are older are not looked for; null: all are. */
  readonly freshFrom: Instant | null
  readonly onDead: 'hold' | 'skip'
  /** Rows that were claimed at least so often, and never settled, are suspect. */
  readonly suspectFrom: number
  /** Claims rows that are suspect, or those that are not. */
  readonly suspects: boolean
}

export interface Claim {
  /** In the order of creation. */
  readonly messages: readonly ClaimedMessage[]
  /** The lines of rows that were parked. */
  readonly parked: readonly Line[]
  /** When the last one was created of those that nobody had claimed before; null: there were none, or it is not known. */
  readonly newestFresh: Instant | null
}

/** Rows of one line in one claim. They are delivered one after the other, so more would only wait in memory. */
export const MAX_RUN = 32

interface ClaimedRow {
  readonly id: string
  readonly tenant: string
  readonly type: string
  readonly payload: Uint8Array
  readonly key: string
  readonly created: Integer
  readonly retries: Integer
  readonly line: string | null
  readonly headers: string | null
  readonly correlation: string | null
  readonly claims: Integer
  readonly processed: Integer | boolean
}

/** The names of a claimed row. Times and ids to sort by stay in the database: reading them costs more than all else. */
const CLAIMED: readonly (keyof ClaimedRow)[] = [
  'id',
  'tenant',
  'type',
  'payload',
  'key',
  'created',
  'retries',
  'line',
  'headers',
  'correlation',
  'claims',
  'processed',
]

/** What a claim needs of a row, under names of our own. */
function returned(layout: Layout, table = ''): string {
  const c = quotedColumns(layout)
  const text = layout.dialect === 'postgres' ? '::text' : ''
  const { hasFlag } = layout
  return `${table}${c.id}${text} AS id, ${table}${c.tenantId}${text} AS tenant, ${table}${c.eventType}${text} AS type,
    ${payloadOf(layout, table + c.payload)} AS payload, ${table}${c.idempotencyKey}${text} AS key,
    ${microsOf(layout, 'createdAt', table + c.createdAt)} AS created, coalesce(${table}${c.retryCount}, 0) AS retries,
    ${table}${c.orderingKey}${text} AS line, ${table}${c.headers}${text} AS headers, ${table}${c.correlationId}${text} AS correlation,
    ${table}${c.claimCount} AS claims, ${hasFlag ? `coalesce(${table}${c.isProcessed}, false)` : 'false'} AS processed`
}

/** The claims of one table. */
export function claimsOf(layout: Layout): (db: Database, request: ClaimRequest) => Promise<Claim> {
  return layout.dialect === 'postgres' ? postgresClaims(layout) : sqliteClaims(layout)
}

function postgresClaims(layout: Layout) {
  const c = quotedColumns(layout)
  const due = dueOf(layout)
  const { always, never } = dueBounds.postgres
  const table = layout.sqlTable
  const candidates = (which: string, limit: string) => `
      SELECT ${c.id} AS id, ${c.tenantId} AS tenant, ${c.orderingKey} AS line, ${c.createdAt} AS created FROM ${table}
      WHERE ${pendingOf(layout)} AND ${which} AND (${c.claimCount} >= $7) = $8
      ORDER BY ${due}, ${c.createdAt}, ${c.id} LIMIT ${limit} FOR UPDATE SKIP LOCKED`
  /**
   * Two walks from the front of the index of what is due, skipping what others are claiming; for every line among the
   * rows found one walk from its front. Both are bounded by the size of the claim, whatever the backlog.
   */
  const statement = layoutStatement(layout, 'claim', {
    postgres: `
    WITH late AS MATERIALIZED (${candidates(
      `${due} > ${always} AND ${due} <= ${timeFrom(layout, 'claimedUntil', '$1')}`,
      '($4::int + 1) / 2',
    )}
    ), fresh AS MATERIALIZED (${candidates(
      `${due} = ${always} AND ${c.createdAt} >= ${timeFrom(layout, 'createdAt', '$5')}`,
      '$4::int - (SELECT count(*) FROM late)',
    )}
    ), candidate AS MATERIALIZED (
      SELECT id, tenant, line, created FROM late UNION ALL SELECT id, tenant, line, created FROM fresh
    ), standing AS (
      SELECT candidate.id, place, row_number() OVER (PARTITION BY candidate.tenant, candidate.line ORDER BY place) AS turn
      FROM (SELECT DISTINCT tenant, line FROM candidate WHERE line IS NOT NULL) AS line
      CROSS JOIN LATERAL (
        SELECT first.id, row_number() OVER () AS place, bool_or(first.busy) OVER () AS busy FROM (
          SELECT ${c.id} AS id, coalesce(${c.claimedUntil} > ${timeFrom(layout, 'claimedUntil', '$1')}, false) AS busy FROM ${table} WHERE ${c.tenantId} = line.tenant AND ${c.orderingKey} = line.line AND ${pendingOf(layout)}
          ORDER BY ${c.tenantId}, ${c.orderingKey}, ${c.deadAt}, ${c.createdAt}, ${c.id} LIMIT ${MAX_RUN}
        ) AS first
      ) AS head
      JOIN candidate ON candidate.id = head.id
      WHERE NOT head.busy AND (NOT $6 OR (
        SELECT true FROM ${table} AS dead WHERE dead.${c.tenantId} = candidate.tenant AND dead.${c.orderingKey} = candidate.line
          AND dead.${c.processedAt} IS NULL AND dead.${c.deadAt} IS NOT NULL
          AND (dead.${c.createdAt}, dead.${c.id}) < (candidate.created, candidate.id) LIMIT 1) IS NULL)
    ), taken AS MATERIALIZED (
      SELECT id FROM candidate WHERE line IS NULL UNION ALL SELECT id FROM standing WHERE place = turn
    ), parked AS (
      UPDATE ${table} SET ${c.nextAttemptAt} = ${never}, ${c.claimedUntil} = NULL, ${c.claimedBy} = NULL
      WHERE ${c.id} = ANY(ARRAY(SELECT id FROM candidate EXCEPT SELECT id FROM taken))
      RETURNING ${c.tenantId}::text AS tenant, ${c.orderingKey}::text AS line
    ), claimed AS (
      UPDATE ${table} SET ${c.claimedUntil} = ${timeFrom(layout, 'claimedUntil', '$3')}, ${c.claimedBy} = $2,
        ${c.claimCount} = ${c.claimCount} + 1, ${c.idempotencyKey} = coalesce(${c.idempotencyKey}, ${newKey(layout)})
      WHERE ${c.id} = ANY(ARRAY(SELECT id FROM taken))
      RETURNING ${returned(layout)}, ${c.createdAt} AS first, ${c.id} AS second
    )
    SELECT ${CLAIMED.map((name) => `claimed.${name}`).join(', ')},
      ${microsOf(layout, 'createdAt', '(SELECT max(created) FROM fresh)')} AS newest, (SELECT json_agg(DISTINCT jsonb_build_object('tenantId', tenant, 'orderingKey', line))::text FROM parked) AS parked
    FROM (SELECT 1) AS one LEFT JOIN claimed ON true ORDER BY claimed.first, claimed.second`,
    sqlite: '',
  })
  const since = instant(-62_135_596_800_000_000n)

  return async (db: Database, request: ClaimRequest): Promise<Claim> => {
    const rows = await db.statement('outbox.claim', (tx) =>
      tx.rows<ClaimedRow & { id: string | null; parked: string | null; newest: Integer | null }>(
        statement,
        request.now,
        request.claimedBy,
        request.claimedUntil,
        request.limit,
        request.freshFrom ?? since,
        request.onDead === 'hold' ? 'true' : 'false',
        request.suspectFrom,
        request.suspects ? 'true' : 'false',
      ),
    )
    const { parked, newest } = rows[0] ?? {}
    return {
      messages: rows.filter(({ id }) => id !== null).map(messageOf),
      // What the statement made of tenants and lines.
      parked: parked == null ? [] : (JSON.parse(parked) as Line[]),
      newestFresh: newest == null ? null : instant(BigInt(newest)),
    }
  }
}

/** Legacy rows get their key when they are first used. */
const newKey = ({ types }: Layout): string =>
  types.idempotencyKey === 'uuid' ? 'gen_random_uuid()' : `gen_random_uuid()::text`

interface Position {
  readonly id: Integer | string
  readonly at: Integer | string
}

/** A row that may be claimed. `at` is its time of creation as the table has it. */
type Candidate = Omit<ClaimedRow, 'id' | 'key'> & {
  readonly id: Integer | string
  readonly at: Integer | string
  readonly key: string | null
}

function sqliteClaims(layout: Layout) {
  const c = quotedColumns(layout)
  const due = dueOf(layout)
  const { always, never } = dueBounds.sqlite
  const table = layout.sqlTable
  const statement = (verb: string, text: string) =>
    layoutStatement(layout, verb, { postgres: '', sqlite: text }, { bigints: true })
  const candidates = (which: string, order: string) => `
    SELECT ${returned(layout, `${table}.`)}, ${c.createdAt} AS at FROM ${table}
    WHERE ${pendingOf(layout)} AND ${which} AND (${c.claimCount} >= $3) = $4
    ORDER BY ${order}${table}.${c.createdAt}, ${table}.${c.id} LIMIT $2`
  const late = statement('late', candidates(`${due} > ${always} AND ${due} <= $1`, `${due}, `))
  // All are due since ever: naming that in the order, too, makes SQLite sort the whole backlog.
  const fresh = statement('fresh', candidates(`${due} = ${always} AND ${c.createdAt} >= $1`, ''))
  const front = statement(
    'front',
    `SELECT ${c.id} AS id, coalesce(${c.claimedUntil} > $3, 0) AS busy FROM ${table}
     WHERE ${c.tenantId} = $1 AND ${c.orderingKey} = $2 AND ${pendingOf(layout)}
     ORDER BY ${c.deadAt}, ${c.createdAt}, ${c.id} LIMIT ${MAX_RUN}`,
  )
  /** Dead rows that hold a line are few. */
  const firstDead = statement(
    'firstDead',
    `SELECT ${c.id} AS id, ${c.createdAt} AS at FROM ${table} WHERE ${c.tenantId} = $1 AND ${c.orderingKey} = $2
     AND ${c.processedAt} IS NULL AND ${c.deadAt} IS NOT NULL ORDER BY ${c.createdAt}, ${c.id} LIMIT 1`,
  )
  const park = statement(
    'park',
    `UPDATE ${table} SET ${c.nextAttemptAt} = ${never}, ${c.claimedUntil} = NULL, ${c.claimedBy} = NULL WHERE ${c.id} = $1`,
  )
  // The key is not named: SQLite would write the index of keys anew, a page per row.
  const take = statement(
    'take',
    `UPDATE ${table} SET ${c.claimedUntil} = $3, ${c.claimedBy} = $2, ${c.claimCount} = ${c.claimCount} + 1
     WHERE ${c.id} IN (SELECT value FROM json_each($1))`,
  )
  const giveKey = statement('giveKey', `UPDATE ${table} SET ${c.idempotencyKey} = $2 WHERE ${c.id} = $1`)
  const before = layout.types.createdAt === 'integer' ? instant(-62_135_596_800_000_000n) : ''

  async function look(session: Session, request: ClaimRequest) {
    const { now, limit, suspectFrom } = request
    const suspects = request.suspects ? 1 : 0
    const again = await session.rows<Candidate>(late, now, Math.ceil(limit / 2), suspectFrom, suspects)
    const from = typeof before === 'string' ? before : (request.freshFrom ?? before)
    const rest = limit - again.length
    const untouched = await session.rows<Candidate>(fresh, from, rest, suspectFrom, suspects)
    const newest = untouched.at(-1)?.at
    const newestFresh = typeof before === 'string' || newest === undefined ? null : instant(BigInt(newest))
    return { found: [...again, ...untouched], newestFresh }
  }

  /** Those of a line that can be taken: its front, as far as all of it is among the candidates. */
  async function frontOf(tx: Transaction, line: Line, among: readonly Candidate[], request: ClaimRequest) {
    const { tenantId, orderingKey } = line
    const [dead] = request.onDead === 'hold' ? await tx.rows<Position>(firstDead, tenantId, orderingKey) : []
    const standing = await tx.rows<{ id: Integer; busy: Integer }>(front, tenantId, orderingKey, request.now)
    if (standing.some(({ busy }) => Number(busy) === 1)) return new Set()
    const free = among.filter((candidate) => dead === undefined || byCreation(candidate, dead) < 0)
    const known = new Set(free.map(({ id }) => id))
    const end = standing.findIndex(({ id }) => !known.has(id))
    return new Set((end < 0 ? standing : standing.slice(0, end)).map(({ id }) => id))
  }

  return async (db: Database, request: ClaimRequest): Promise<Claim> => {
    // Most looks find nothing: they must not wait for the one writer that SQLite allows.
    const some = await db.session('outbox.look', (session) => look(session, { ...request, limit: 1 }))
    if (some.found.length === 0) return { messages: [], parked: [], newestFresh: null }
    return db.transaction('outbox.claim', async (tx) => {
      const { found, newestFresh } = await look(tx, request)
      const lines = new Map<string, { line: Line; among: Candidate[] }>()
      for (const candidate of found) {
        if (candidate.line === null) continue
        const line = { tenantId: candidate.tenant, orderingKey: candidate.line }
        const name = JSON.stringify(line)
        const entry = lines.get(name) ?? { line, among: [] }
        entry.among.push(candidate)
        lines.set(name, entry)
      }
      const taken = new Set<unknown>()
      const parked: Line[] = []
      for (const { line, among } of lines.values()) {
        const standing = await frontOf(tx, line, among, request)
        for (const { id } of among) {
          if (standing.has(id)) taken.add(id)
          else await tx.run(park, id)
        }
        if (standing.size < among.length) parked.push(line)
      }
      const ours = found.filter(({ id, line }) => line === null || taken.has(id)).sort(byCreation)
      const ids = ours.map(({ id }) => String(id))
      await tx.run(take, idList(layout, ids), request.claimedBy, request.claimedUntil)
      const messages: ClaimedMessage[] = []
      for (const row of ours) {
        const key = row.key ?? randomUUID()
        if (row.key === null) await tx.run(giveKey, row.id, key)
        messages.push(messageOf({ ...row, id: String(row.id), key, claims: Number(row.claims) + 1 }))
      }
      return { messages, parked, newestFresh }
    })
  }
}

/** As the index has them: times and ids are of one type each. */
function byCreation(a: Position, b: Position): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1
  return a.id < b.id ? -1 : 1
}

function messageOf(row: ClaimedRow): ClaimedMessage {
  return {
    id: String(row.id),
    tenantId: String(row.tenant),
    eventType: row.type,
    payload: row.payload ?? new Uint8Array(0),
    key: row.key,
    createdAt: instant(BigInt(row.created)),
    retryCount: Number(row.retries),
    orderingKey: row.line,
    headers: headersOf(row.headers),
    correlationId: row.correlation,
    claims: Number(row.claims),
    alreadyProcessed: row.processed === true || Number(row.processed) === 1,
  }
}

/** Headers that others wrote may be anything: what is no record of texts is left out. */
function headersOf(text: string | null): Readonly<Record<string, string>> {
  if (text === null) return {}
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return {}
    const entries = Object.entries(parsed).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    )
    return Object.fromEntries(entries)
  } catch {
    return {}
  }
}

/** Whether a suspect row is due: a look at what is due again, of which there is little. */
export function suspicionsOf(layout: Layout) {
  const c = quotedColumns(layout)
  const due = dueOf(layout)
  const { always } = dueBounds[layout.dialect]
  const statement = layoutStatement(
    layout,
    'suspects',
    `SELECT 1 AS found FROM ${layout.sqlTable} WHERE ${pendingOf(layout)} AND ${due} > ${always}
       AND ${due} <= ${timeFrom(layout, 'claimedUntil', '$1')} AND ${c.claimCount} >= $2 LIMIT 1`,
  )
  return async (db: Database, now: Instant, suspectFrom: number): Promise<boolean> =>
    (await db.session('outbox.suspects', (session) => session.rows(statement, now, suspectFrom))).length > 0
}

/** Claims that are still needed last longer; gives the ids that are still ours. By primary key. */
export function renewalsOf(layout: Layout) {
  const c = quotedColumns(layout)
  const ours = `${c.claimedBy} = $2 AND ${c.processedAt} IS NULL`
  const statement = layoutStatement(layout, 'renew', {
    postgres: `UPDATE ${layout.sqlTable} SET ${c.claimedUntil} = ${timeFrom(layout, 'claimedUntil', '$3')}
      WHERE ${c.id} = ANY($1::text[]::${listType(layout, 'id')}) AND ${ours} RETURNING ${c.id}::text AS id`,
    sqlite: `UPDATE ${layout.sqlTable} SET ${c.claimedUntil} = $3
      WHERE ${c.id} IN (SELECT value FROM json_each($1)) AND ${ours} RETURNING CAST(${c.id} AS TEXT) AS id`,
  })
  return async (
    db: Database,
    ids: readonly string[],
    claimedBy: string,
    until: Instant,
  ): Promise<Set<string>> => {
    const rows = await db.transaction('outbox.renew', (tx) =>
      tx.rows<{ id: string }>(statement, idList(layout, ids), claimedBy, until),
    )
    return new Set(rows.map(({ id }) => id))
  }
}

/** A list of row ids as a parameter. SQLite compares by type: whole numbers are numbers there. */
export function idList({ dialect, types }: Layout, ids: readonly string[]): string {
  if (dialect === 'postgres') return `{${ids.map((id) => JSON.stringify(id)).join(',')}}`
  return /int/.test(types.id) ? `[${ids.join(',')}]` : JSON.stringify(ids)
}
