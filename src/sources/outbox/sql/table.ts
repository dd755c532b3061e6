/** The statements of a dispatcher on one table, made once. */
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

/** Rows due again that are searched: those before a suspect are delivered, and bring it into reach. */
const SUSPECT_REACH = 1_000

/** On the index of due rows. */
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
 * Renews claims by primary key. It waits for no lock, so it is part of no circle: `locked` rows are ours as well, most
 * often in the settlement that ends their claim.
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
 * Says whether a dispatcher waits to be woken. A NOTIFY in every transaction makes all commits of a database wait for
 * each other, so writers notify only while this row says so. A hint: dispatchers poll as well.
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
      // Lost in a crash it costs one poll: it need not wait for the disk.
      await Promise.all([tx.rows(hurry), tx.run(flip, waiting ? 'true' : 'false')])
    })
}

export const onDatabase =
  (db: Database): RunSql =>
  (text, parameters) =>
    db.session('outbox.inspect', (session) =>
      session.rows<Record<string, unknown>>(
        { name: `outbox.inspect.${shortHash(text)}`, postgres: text, sqlite: text, bigints: false },
        // Only names of tables.
        ...(parameters as readonly Value[]),
      ),
    )

export const readTable = async (db: Database, options: TableOptions): Promise<MessageTable> =>
  messageTable(await readLayout(db.dialect, options, onDatabase(db)))

/** During an adoption the tables beside it may come after its columns. */
export const isWhole = ({ layout }: MessageTable): boolean =>
  layout.hasKeys && (layout.hasWake || layout.dialect === 'sqlite')

/** How long an answer that is not final is used. */
const PROVISIONAL_MS = 10_000

/** Asks once; failures are not remembered. */
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
