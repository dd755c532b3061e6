/**
 * Claims due messages for a dispatcher, in one short transaction. Up to half of a claim are rows due again (retries,
 * lapsed claims), the rest fresh ones in order of creation, so that neither starves the other.
 *
 * A row of a line is taken only together with all rows before it, and only while nobody holds another of the line: one
 * that was committed late may stand before a row in delivery. A row that cannot be taken is *parked*: it leaves the
 * front of the index until the line moves on (line.ts), so a long line behind a waiting or dead message costs nothing.
 */
import { randomUUID } from 'node:crypto'
import { type Instant, instant } from '../../../core/clock.ts'
import type { Database, Integer, Session, Transaction } from '../../../store/database.ts'
import { isTrue, type Layout, newKeyOf, type Stored } from '../table/layout.ts'
import type { ClaimedMessage } from '../table/message.ts'
import type { ColumnName } from '../table/table-names.ts'
import { idList } from './by-id.ts'
import type { Line } from './line.ts'

export interface ClaimRequest {
  readonly now: Instant
  readonly claimedBy: string
  readonly claimedUntil: Instant
  readonly limit: number
  /** Older fresh rows are not looked for; null: all are. */
  readonly freshFrom: Instant | null
  readonly onDead: 'hold' | 'skip'
  /** Rows claimed at least so often without being settled are suspect. */
  readonly suspectFrom: number
  /** True: suspects only. False: all others. */
  readonly suspects: boolean
}

export interface Claim {
  readonly messages: readonly ClaimedMessage[]
  /** Lines of rows that were parked. */
  readonly parked: readonly Line[]
  /** Creation of the newest row that nobody had claimed before; null: none, or not known. */
  readonly newestFresh: Instant | null
}

/** Rows of one line in one claim. They are delivered one by one: more would only wait in memory. */
export const MAX_RUN = 32

export function claimsOf(layout: Layout): (db: Database, request: ClaimRequest) => Promise<Claim> {
  return layout.dialect === 'postgres' ? postgresClaims(layout) : sqliteClaims(layout)
}

function postgresClaims(layout: Layout) {
  const { c, due, pending, sqlTable: table } = layout
  const { always, never } = layout.dueBounds
  const { selected, namesIn } = claimedRow(layout)
  const candidates = (which: string, limit: string) => `
      SELECT ${c.id} AS id, ${c.tenantId} AS tenant, CASE WHEN ${c.tenantId} IS NOT NULL THEN ${c.orderingKey} END AS line, ${c.createdAt} AS created FROM ${table}
      WHERE ${pending} AND ${which} AND (coalesce(${c.claimCount}, 0) >= $6) = $7
      ORDER BY ${due}, ${c.createdAt}, ${c.id} LIMIT ${limit} FOR UPDATE SKIP LOCKED`
  /**
   * Two walks from the front of the index of due rows, skipping what others claim, and one from the front of each line
   * found. Bounded by the size of the claim, whatever the backlog. Nothing is joined: a planner that knows little of
   * the table would walk every line for every row. The dead of a line are read in its order, so that its index is used.
   */
  const claimFrom = (verb: string, behind: string) =>
    layout.statement(verb, {
      postgres: `
    WITH late AS MATERIALIZED (${candidates(
      `${due} > ${always} AND ${due} <= ${layout.time('claimedUntil', '$1')}`,
      '($4::int + 1) / 2',
    )}
    ), fresh AS MATERIALIZED (${candidates(
      `${due} = ${always} ${behind}`,
      '$4::int - (SELECT count(*) FROM late)',
    )}
    ), candidate AS MATERIALIZED (
      SELECT id, tenant, line, created FROM late UNION ALL SELECT id, tenant, line, created FROM fresh
    ), front AS MATERIALIZED (
      SELECT line.tenant, line.line, head.id, head.created
      FROM (SELECT DISTINCT tenant, line FROM candidate WHERE line IS NOT NULL) AS line
      CROSS JOIN LATERAL (
        SELECT first.id, first.created, bool_or(first.busy) OVER () AS busy,
          bool_and(first.id IN (SELECT id FROM candidate)) OVER (ROWS UNBOUNDED PRECEDING) AS found
        FROM (
          SELECT ${c.id} AS id, ${c.createdAt} AS created, coalesce(${c.claimedUntil} > ${layout.time('claimedUntil', '$1')}, false) AS busy
          FROM ${table} WHERE ${c.tenantId} = line.tenant AND ${c.orderingKey} = line.line AND ${pending}
          ORDER BY ${c.tenantId}, ${c.orderingKey}, ${c.deadAt}, ${c.createdAt}, ${c.id} LIMIT ${MAX_RUN}
        ) AS first
      ) AS head
      WHERE head.found AND NOT head.busy
    ), taken AS MATERIALIZED (
      SELECT id FROM candidate WHERE line IS NULL UNION ALL SELECT id FROM front WHERE NOT $5 OR (
        SELECT true FROM ${table} AS dead WHERE dead.${c.tenantId} = front.tenant AND dead.${c.orderingKey} = front.line
          AND dead.${c.processedAt} IS NULL AND dead.${c.deadAt} IS NOT NULL
          AND (dead.${c.createdAt}, dead.${c.id}) < (front.created, front.id)
        ORDER BY dead.${c.tenantId}, dead.${c.orderingKey}, dead.${c.deadAt}, dead.${c.createdAt}, dead.${c.id} LIMIT 1) IS NULL
    ), parked AS (
      UPDATE ${table} SET ${c.nextAttemptAt} = ${never}, ${c.claimedUntil} = NULL, ${c.claimedBy} = NULL
      WHERE ${c.id} = ANY(ARRAY(SELECT id FROM candidate EXCEPT SELECT id FROM taken))
      RETURNING ${c.tenantId}::text AS tenant, ${c.orderingKey}::text AS line
    ), claimed AS (
      UPDATE ${table} SET ${c.claimedUntil} = ${layout.time('claimedUntil', '$3')}, ${c.claimedBy} = $2,
        ${c.claimCount} = coalesce(${c.claimCount}, 0) + 1, ${c.idempotencyKey} = coalesce(${c.idempotencyKey}, ${newKeyOf(layout)})
      WHERE ${c.id} = ANY(ARRAY(SELECT id FROM taken))
      RETURNING ${selected}, ${c.createdAt} AS first, ${c.id} AS second
    )
    SELECT ${namesIn('claimed')},
      ${layout.finiteMicros('createdAt', '(SELECT max(created) FROM fresh)')} AS newest, (SELECT json_agg(DISTINCT jsonb_build_object('tenantId', tenant, 'orderingKey', line))::text FROM parked) AS parked
    FROM (SELECT 1) AS one LEFT JOIN claimed ON true ORDER BY claimed.first, claimed.second`,
      sqlite: '',
    })
  // Rows without a time included, and legacy rows, which get their key at first use.
  const claimAll = claimFrom('claim', '')
  const claimLater = claimFrom('claimLater', `AND ${c.createdAt} >= ${layout.time('createdAt', '$8')}`)

  return async (db: Database, request: ClaimRequest): Promise<Claim> => {
    const rows = await db.statement('outbox.claim', (tx) =>
      tx.rows<ClaimedRow & { id: string | null; parked: string | null; newest: Integer | null }>(
        request.freshFrom === null ? claimAll : claimLater,
        request.now,
        request.claimedBy,
        request.claimedUntil,
        request.limit,
        request.onDead === 'hold' ? 'true' : 'false',
        request.suspectFrom,
        request.suspects ? 'true' : 'false',
        ...(request.freshFrom === null ? [] : [request.freshFrom]),
      ),
    )
    const { parked, newest } = rows[0] ?? {}
    return {
      messages: rows.filter(({ id }) => id !== null).map((row) => messageOf(row)),
      // Built by the statement.
      parked: parked == null ? [] : (JSON.parse(parked) as Line[]),
      newestFresh: newest == null ? null : instant(BigInt(newest)),
    }
  }
}

interface Position {
  readonly id: Integer | string
  readonly at: Integer | string
}

/** `at` is the time of creation as the table has it. */
type Candidate = ReadRow & Position

function sqliteClaims(layout: Layout) {
  const { c, due, pending, sqlTable: table } = layout
  const { always, never } = layout.dueBounds
  const statement = (verb: string, text: string) =>
    layout.statement(verb, { postgres: '', sqlite: text }, { bigints: true })
  const candidates = (which: string, order: string) => `
    SELECT ${claimedRow(layout).selected}, ${c.createdAt} AS at FROM ${table}
    WHERE ${pending} AND ${which} AND (coalesce(${c.claimCount}, 0) >= $2) = $3
    ORDER BY ${order}${table}.${c.createdAt}, ${table}.${c.id} LIMIT $1`
  const late = statement('late', candidates(`${due} > ${always} AND ${due} <= $4`, `${due}, `))
  // Naming the due time in the order too would make SQLite sort the whole backlog.
  const fresh = statement('fresh', candidates(`${due} = ${always}`, ''))
  const freshLater = statement('freshLater', candidates(`${due} = ${always} AND ${c.createdAt} >= $4`, ''))
  const readFront = statement(
    'front',
    `SELECT ${c.id} AS id, coalesce(${c.claimedUntil} > $3, 0) AS busy FROM ${table}
     WHERE ${c.tenantId} = $1 AND ${c.orderingKey} = $2 AND ${pending}
     ORDER BY ${c.deadAt}, ${c.createdAt}, ${c.id} LIMIT ${MAX_RUN}`,
  )
  const firstDead = statement(
    'firstDead',
    `SELECT ${c.id} AS id, ${c.createdAt} AS at FROM ${table} WHERE ${c.tenantId} = $1 AND ${c.orderingKey} = $2
     AND ${c.processedAt} IS NULL AND ${c.deadAt} IS NOT NULL ORDER BY ${c.createdAt}, ${c.id} LIMIT 1`,
  )
  const park = statement(
    'park',
    `UPDATE ${table} SET ${c.nextAttemptAt} = ${never}, ${c.claimedUntil} = NULL, ${c.claimedBy} = NULL WHERE ${c.id} = $1`,
  )
  // The key is not set here: SQLite would rewrite the index of keys, a page per row.
  const take = statement(
    'take',
    `UPDATE ${table} SET ${c.claimedUntil} = $3, ${c.claimedBy} = $2, ${c.claimCount} = coalesce(${c.claimCount}, 0) + 1
     WHERE ${c.id} IN (SELECT value FROM json_each($1))`,
  )
  const giveKey = statement('giveKey', `UPDATE ${table} SET ${c.idempotencyKey} = $2 WHERE ${c.id} = $1`)
  /** Times of creation are comparable with ours. */
  const knowsTimes = layout.types.createdAt === 'integer'

  async function look(session: Session, request: ClaimRequest) {
    const { now, limit, suspectFrom } = request
    const suspects = request.suspects ? 1 : 0
    const again = await session.rows<Candidate>(late, Math.ceil(limit / 2), suspectFrom, suspects, now)
    const rest = [limit - again.length, suspectFrom, suspects] as const
    const untouched =
      request.freshFrom === null || !knowsTimes
        ? await session.rows<Candidate>(fresh, ...rest)
        : await session.rows<Candidate>(freshLater, ...rest, request.freshFrom)
    const newest = untouched.at(-1)?.at
    const newestFresh = knowsTimes && typeof newest === 'bigint' ? instant(newest) : null
    return { found: [...again, ...untouched], newestFresh }
  }

  /** The front of a line, as far as all of it is among the candidates. */
  async function frontOf(tx: Transaction, line: Line, among: readonly Candidate[], request: ClaimRequest) {
    const { tenantId, orderingKey } = line
    const [dead] = request.onDead === 'hold' ? await tx.rows<Position>(firstDead, tenantId, orderingKey) : []
    const front = await tx.rows<{ id: Integer; busy: Integer }>(readFront, tenantId, orderingKey, request.now)
    if (front.some(({ busy }) => Number(busy) === 1)) return new Set()
    const free = among.filter((candidate) => dead === undefined || byCreation(candidate, dead) < 0)
    const known = new Set(free.map(({ id }) => id))
    const end = front.findIndex(({ id }) => !known.has(id))
    return new Set((end < 0 ? front : front.slice(0, end)).map(({ id }) => id))
  }

  return async (db: Database, request: ClaimRequest): Promise<Claim> => {
    // Most looks find nothing, and must not wait for SQLite's one writer. Behind a full claim there is more.
    if (request.freshFrom === null) {
      const some = await db.session('outbox.look', (session) => look(session, { ...request, limit: 1 }))
      if (some.found.length === 0) return { messages: [], parked: [], newestFresh: null }
    }
    return db.transaction('outbox.claim', async (tx) => {
      const { found, newestFresh } = await look(tx, request)
      const lines = new Map<string, { line: Line; among: Candidate[] }>()
      for (const candidate of found) {
        if (candidate.orderingKey === null) continue
        // Such columns may hold numbers.
        const line = { tenantId: String(candidate.tenantId), orderingKey: String(candidate.orderingKey) }
        const name = JSON.stringify(line)
        const entry = lines.get(name) ?? { line, among: [] }
        entry.among.push(candidate)
        lines.set(name, entry)
      }
      const taken = new Set<unknown>()
      const parked: Line[] = []
      for (const { line, among } of lines.values()) {
        const front = await frontOf(tx, line, among, request)
        for (const { id } of among) {
          if (front.has(id)) taken.add(id)
          else await tx.run(park, id)
        }
        if (front.size < among.length) parked.push(line)
      }
      const ours = found
        .filter(({ id, orderingKey }) => orderingKey === null || taken.has(id))
        .sort(byCreation)
      const ids = ours.map(({ id }) => String(id))
      await tx.run(take, idList(layout, ids), request.claimedBy, request.claimedUntil)
      const messages: ClaimedMessage[] = []
      for (const row of ours) {
        const key = row.key ?? randomUUID()
        if (row.key === null) await tx.run(giveKey, row.id, key)
        messages.push(messageOf(row, key, Number(row.claims) + 1))
      }
      return { messages, parked, newestFresh }
    })
  }
}

/** The order of the index. */
function byCreation(a: Position, b: Position): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1
  return a.id < b.id ? -1 : 1
}

/** A row as read; headers are JSON. Columns of applications may hold numbers, or nothing. */
type ClaimedRow = Stored<Omit<ClaimedMessage, 'headers'> & { readonly headers: string | null }>

/** The columns that a claim reads. Times and ids to sort by stay in the database: reading them costs more than all else. */
function claimedRow(layout: Layout) {
  const { c } = layout
  const column = (name: ColumnName | 'isProcessed') => `${layout.sqlTable}.${c[name]}`
  const text = (name: ColumnName) => layout.text(column(name))
  const columns = Object.entries({
    id: text('id'),
    tenantId: text('tenantId'),
    eventType: text('eventType'),
    payload: layout.payloadBytes(column('payload')),
    key: text('idempotencyKey'),
    createdAt: `coalesce(${layout.finiteMicros('createdAt', column('createdAt'))}, 0)`,
    retryCount: `coalesce(${column('retryCount')}, 0)`,
    orderingKey: `CASE WHEN ${column('tenantId')} IS NOT NULL THEN ${text('orderingKey')} END`,
    headers: text('headers'),
    correlationId: text('correlationId'),
    claims: column('claimCount'),
    alreadyProcessed: layout.hasFlag ? `coalesce(${column('isProcessed')}, false)` : 'false',
  } satisfies Record<keyof ClaimedRow, string>)
  return {
    selected: columns.map(([name, expression]) => `${expression} AS "${name}"`).join(', '),
    namesIn: (query: string) => columns.map(([name]) => `${query}."${name}"`).join(', '),
  }
}

/** An id of SQLite may be a number, and a legacy row may have no key. */
type ReadRow = Omit<ClaimedRow, 'id' | 'key'> & {
  readonly id: Integer | string
  readonly key: string | null
}

const messageOf = (row: ReadRow, key = row.key ?? '', claims = Number(row.claims)): ClaimedMessage => ({
  id: String(row.id),
  tenantId: String(row.tenantId ?? ''),
  eventType: String(row.eventType ?? ''),
  payload: row.payload ?? new Uint8Array(0),
  key,
  createdAt: instant(BigInt(row.createdAt)),
  retryCount: Number(row.retryCount),
  orderingKey: row.orderingKey === null ? null : String(row.orderingKey),
  headers: headersOf(row.headers),
  correlationId: row.correlationId === null ? null : String(row.correlationId),
  claims,
  alreadyProcessed: isTrue(row.alreadyProcessed),
})

/** Applications may have written anything: entries that are no texts are left out. */
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
