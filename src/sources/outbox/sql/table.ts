/** All that a dispatcher does with one table, its statements made once. */
import type { Instant } from '../../../core/clock.ts'
import type { Database, Value } from '../../../store/database.ts'
import { asText, type Layout, type RunSql, readLayout } from '../table/layout.ts'
import { shortHash, type TableOptions } from '../table/table-names.ts'
import { idList, inIdList } from './by-id.ts'
import { claimsOf } from './claim.ts'
import { linesOf } from './line.ts'
import { purgesOf } from './purge.ts'
import { settlementsOf } from './settle.ts'

export type MessageTable = ReturnType<typeof messageTable>

export const messageTable = (layout: Layout) => ({
  layout,
  claim: claimsOf(layout),
  suspectsWait: suspicionsOf(layout),
  renew: renewalsOf(layout),
  settle: settlementsOf(layout),
  lines: linesOf(layout),
  purge: purgesOf(layout),
  setWaiting: wakeSwitchOf(layout),
})

/** Of the rows that are due again so many are looked at: those before a suspect are delivered, and it comes into reach. */
const SUSPECT_REACH = 1_000

/** Whether a suspect row is due: a look at the first that are due again, on the index of what is due. */
function suspicionsOf(layout: Layout) {
  const { c, due, pending, dueBounds } = layout
  const statement = layout.statement(
    'suspects',
    `SELECT 1 AS found FROM (SELECT ${c.claimCount} AS claims FROM ${layout.sqlTable} WHERE ${pending} AND ${due} > ${dueBounds.always}
       AND ${due} <= ${layout.time('claimedUntil', '$1')} ORDER BY ${due}, ${c.createdAt}, ${c.id} LIMIT ${SUSPECT_REACH}) AS first
     WHERE claims >= $2 LIMIT 1`,
  )
  return async (db: Database, now: Instant, suspectFrom: number): Promise<boolean> =>
    (await db.session('outbox.suspects', (session) => session.rows(statement, now, suspectFrom))).length > 0
}

/**
 * Claims that are still needed last longer. By primary key; waits for no lock, so that it is part of no circle of those who do: `locked`
 * are ours as well, but somebody has them, most often the settlement that ends the claim.
 */
function renewalsOf(layout: Layout) {
  const { c, sqlTable: table } = layout
  const ours = `${inIdList(layout)} AND ${c.claimedBy} = $2 AND ${c.processedAt} IS NULL`
  const update = (which: string) =>
    `UPDATE ${table} SET ${c.claimedUntil} = ${layout.time('claimedUntil', '$3')} WHERE ${which} RETURNING ${asText(c.id)} AS id`
  const renew = layout.statement('renew', {
    postgres: update(
      `${c.id} = ANY(ARRAY(SELECT ${c.id} FROM ${table} WHERE ${ours} FOR UPDATE SKIP LOCKED))`,
    ),
    sqlite: update(ours),
  })
  const stillOurs = layout.statement('stillOurs', `SELECT ${asText(c.id)} AS id FROM ${table} WHERE ${ours}`)
  return async (db: Database, ids: readonly string[], claimedBy: string, until: Instant) => {
    const idsOf = (rows: readonly { id: string }[]): ReadonlySet<string> => new Set(rows.map(({ id }) => id))
    const list = idList(layout, ids)
    const renewed = idsOf(
      await db.transaction('outbox.renew', (tx) => tx.rows<{ id: string }>(renew, list, claimedBy, until)),
    )
    if (renewed.size === ids.length) return { renewed, locked: idsOf([]) }
    const kept = await db.session('outbox.stillOurs', (session) =>
      session.rows<{ id: string }>(stillOurs, list, claimedBy),
    )
    return { renewed, locked: idsOf(kept.filter(({ id }) => !renewed.has(id))) }
  }
}

/**
 * Says whether a dispatcher of the table waits to be woken. A NOTIFY in every transaction makes all commits of a database wait for
 * each other, so writers notify only while one waits: one row says so. It is a hint; dispatchers poll behind it.
 */
function wakeSwitchOf(layout: Layout): (db: Database, waiting: boolean) => Promise<void> {
  if (!layout.hasWake) return async () => {}
  const hurry = layout.statement('hurry', `SELECT set_config('synchronous_commit', 'off', true)`)
  const flip = layout.statement(
    'waiting',
    `UPDATE ${layout.wake.sqlTable} SET waiting = $1::boolean WHERE waiting <> $1::boolean`,
  )
  return (db, waiting) =>
    db.transaction('outbox.waiting', async (tx) => {
      // A hint that is lost in a crash costs one poll: it need not wait for the disk.
      await Promise.all([tx.rows(hurry), tx.run(flip, waiting ? 'true' : 'false')])
    })
}

/** Runs single statements on a database. */
export const onDatabase =
  (db: Database): RunSql =>
  (text, parameters) =>
    db.session('outbox.inspect', (session) =>
      session.rows<Record<string, unknown>>(
        { name: `outbox.inspect.${shortHash(text)}`, postgres: text, sqlite: text, bigints: false },
        // Names of tables.
        ...(parameters as readonly Value[]),
      ),
    )

/** The table of an outbox, looked at. */
export const readTable = async (db: Database, options: TableOptions): Promise<MessageTable> =>
  messageTable(await readLayout(db.dialect, options, onDatabase(db)))

/** Whether the small tables beside it are there too; while a table is being adopted they may come after its columns. */
export const isWhole = ({ layout }: MessageTable): boolean =>
  layout.hasKeys && (layout.hasWake || layout.dialect === 'sqlite')

/** How long an answer is used that is not the last word. */
const PROVISIONAL_MS = 10_000

/** Asks once. A failure is not remembered, and an answer that is not `final` only for some seconds. */
export function once<T>(ask: () => Promise<T>, final: (answer: T) => boolean): () => Promise<T> {
  let asked: Promise<T> | undefined
  let usedUntilMs = Number.POSITIVE_INFINITY
  return () => {
    if (asked !== undefined && performance.now() < usedUntilMs) return asked
    usedUntilMs = Number.POSITIVE_INFINITY
    asked = ask().then(
      (answer) => {
        if (!final(answer)) usedUntilMs = performance.now() + PROVISIONAL_MS
        return answer
      },
      (error: unknown) => {
        asked = undefined
        throw error
      },
    )
    return asked
  }
}
