/**
 * Lines: messages of one tenant and ordering key, one behind the other. Claims park those that have to wait; when a
 * line moves on, the first of them are released. A claim that parks and a settlement that releases may pass each other,
 * so both look after their own transaction: the settlement releases in a second one, and the claim looks again at the
 * lines in which it parked.
 */
import type { Database, Session } from '../../../store/database.ts'
import { asText, type Layout, perLayout } from '../table/layout.ts'
import type { OutboxMessage } from '../table/message.ts'
import { MAX_RUN } from './claim.ts'

export interface Line {
  readonly tenantId: string
  readonly orderingKey: string
}

export const lineOf = ({ tenantId, orderingKey }: Pick<OutboxMessage, keyof Line>): Line | null =>
  orderingKey === null ? null : { tenantId, orderingKey }

export const linesOf = perLayout((layout: Layout) => {
  const release = releasesOf(layout)
  const walk = walksOf(layout)
  return {
    /** Releases the first rows of these lines where nothing before them is left; gives how many. */
    release,
    /**
     * The same for all open lines, `limit` at a time behind `after`: for rows that were deleted or settled by others,
     * and for dispatchers that ended between two transactions. Gives the last line.
     */
    async sweep(db: Database, after: Line | null, limit: number, onDead: OnDead): Promise<Line | null> {
      const lines = await db.session('outbox.sweep', (session) => walk(session, after, limit))
      if (lines.length > 0) await release(db, lines, onDead)
      return lines.length < limit ? null : (lines.at(-1) ?? null)
    },
  }
})

type OnDead = 'hold' | 'skip'

function releasesOf(layout: Layout) {
  const { c, sqlTable: table } = layout
  const order = `${c.tenantId}, ${c.orderingKey}, ${c.deadAt}, ${c.createdAt}, ${c.id}`
  const { again, never } = layout.dueBounds
  const waits = `${c.nextAttemptAt} = ${never} AND ${c.claimedUntil} IS NULL`
  const ofLine = (tenant: string, line: string) => `${c.tenantId} = ${tenant} AND ${c.orderingKey} = ${line}`
  /**
   * One look at the front of each line. Its first rows are released when the front waits, none of them is held, and no
   * dead row holds the line.
   */
  const front = (tenant: string, line: string) => `
    SELECT ${c.id} AS id, ${c.createdAt} AS created, ${waits} AS waits, ${c.claimedUntil} IS NOT NULL AS busy FROM ${table}
    WHERE ${ofLine(tenant, line)} AND ${layout.pending} ORDER BY ${order}`
  // Without the plus signs SQLite would search this in all lines.
  const place = layout.dialect === 'postgres' ? `${c.createdAt}, ${c.id}` : `+${c.createdAt}, +${c.id}`
  const holds = (tenant: string, line: string, hold: string) => `(${hold} AND (
    SELECT true FROM ${table} WHERE ${ofLine(tenant, line)} AND ${c.processedAt} IS NULL AND ${c.deadAt} IS NOT NULL
      AND (${place}) < (first.created, first.id) ORDER BY ${order} LIMIT 1) IS NOT NULL)`
  const busy = (tenant: string, line: string) =>
    `EXISTS (SELECT 1 FROM (${front(tenant, line)} LIMIT ${MAX_RUN}) AS each WHERE each.busy)`
  const given = [
    layout.typed('tenantId', 'line."tenantId"'),
    layout.typed('orderingKey', 'line."orderingKey"'),
  ] as const
  // Locked rows are left to their holder or the next sweep: two releases could wait for each other in a circle. So is a
  // line whose first row is locked: those behind it would be claimed and parked again without end.
  const free = layout.statement('release', {
    postgres: `
      WITH found AS MATERIALIZED (
        SELECT first.id AS first, next.id FROM jsonb_to_recordset($1::jsonb) AS line ("tenantId" text, "orderingKey" text)
        CROSS JOIN LATERAL (${front(...given)} LIMIT 1) AS first
        CROSS JOIN LATERAL (${front(...given)} LIMIT ${MAX_RUN}) AS next
        WHERE first.waits AND next.waits AND NOT ${busy(...given)} AND NOT ${holds(...given, '$2::boolean')}
      ), free AS MATERIALIZED (
        SELECT ${c.id} AS id FROM ${table} WHERE ${c.id} = ANY(ARRAY(SELECT id FROM found)) AND ${waits} FOR UPDATE SKIP LOCKED
      )
      UPDATE ${table} SET ${c.nextAttemptAt} = ${again}
      WHERE ${c.id} = ANY(ARRAY(
        SELECT id FROM found WHERE id IN (SELECT id FROM free) AND first IN (SELECT id FROM free)))`,
    sqlite: `
      UPDATE ${table} SET ${c.nextAttemptAt} = ${again}
      WHERE ${c.id} IN (SELECT next.id FROM (${front('$1', '$2')} LIMIT 1) AS first, (${front('$1', '$2')} LIMIT ${MAX_RUN}) AS next
        WHERE first.waits AND next.waits AND NOT ${busy('$1', '$2')} AND NOT ${holds('$1', '$2', '$3')})
      AND ${waits}`,
  })

  return async (db: Database, lines: readonly Line[], onDead: OnDead): Promise<number> => {
    if (lines.length === 0) return 0
    const hold = onDead === 'hold'
    if (layout.dialect === 'postgres') {
      const list = JSON.stringify([...lines].sort(byName))
      return db.statement('outbox.release', (tx) => tx.run(free, list, hold ? 'true' : 'false'))
    }
    return db.transaction('outbox.release', async (tx) => {
      let released = 0
      for (const { tenantId, orderingKey } of lines)
        released += await tx.run(free, tenantId, orderingKey, hold ? 1 : 0)
      return released
    })
  }
}

const byName = (a: Line, b: Line): number =>
  a.tenantId === b.tenantId ? (a.orderingKey < b.orderingKey ? -1 : 1) : a.tenantId < b.tenantId ? -1 : 1

/** One step of the index per line. */
function walksOf(layout: Layout) {
  const { c } = layout
  const next = (behind: string) => `
    SELECT ${c.tenantId} AS tenant, ${c.orderingKey} AS line FROM ${layout.sqlTable}
    WHERE ${c.orderingKey} IS NOT NULL AND ${c.processedAt} IS NULL ${behind}
    ORDER BY ${c.tenantId}, ${c.orderingKey}, ${c.deadAt}, ${c.createdAt}, ${c.id} LIMIT 1`
  const given = `AND (${c.tenantId}, ${c.orderingKey}) > (${layout.typed('tenantId', '$1')}, ${layout.typed('orderingKey', '$2')})`
  const statement = (verb: string, behind: string) =>
    layout.statement(
      verb,
      `SELECT ${asText('tenant')} AS tenant, ${asText('line')} AS line FROM (${next(behind)}) AS next`,
    )
  const first = statement('firstLine', '')
  const later = statement('nextLine', given)

  return async (session: Session, after: Line | null, limit: number): Promise<Line[]> => {
    const lines: Line[] = []
    for (let at = after; lines.length < limit; at = lines.at(-1) ?? null) {
      type Row = { readonly tenant: string; readonly line: string }
      const [row] = await (at === null
        ? session.rows<Row>(first)
        : session.rows<Row>(later, at.tenantId, at.orderingKey))
      if (row === undefined) break
      lines.push({ tenantId: row.tenant, orderingKey: row.line })
    }
    return lines
  }
}
