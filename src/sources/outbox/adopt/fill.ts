/**
 * Fills rows from before the adoption: a key for each, and the time of processing where only a flag said that a row is
 * done. In chunks behind the last id. Rows that others hold are passed over and met in the next pass, so it never waits
 * while it holds locks.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { columnsOf, type Layout, newKeyOf } from '../table/layout.ts'
import { type Adoption, AdoptionBlocked, type AdoptSettings, type Step } from './report.ts'

export function lackingOf(layout: Layout, table = ''): string {
  const { idempotencyKey, isProcessed, processedAt } = layout.c
  const keyless = `${table}${idempotencyKey} IS NULL`
  return layout.hasFlag
    ? `(${keyless} OR (${table}${isProcessed} AND ${table}${processedAt} IS NULL))`
    : keyless
}

/**
 * Nobody wrote down when a row was processed: it counts from now. With the time of creation, the first purge would
 * remove years of rows that their owner never meant to lose.
 */
export function fillingOf(layout: Layout, table = ''): string {
  const { idempotencyKey, isProcessed, processedAt } = layout.c
  const key = `${idempotencyKey} = coalesce(${table}${idempotencyKey}, ${newKeyOf(layout)})`
  if (!layout.hasFlag) return key
  const processed = `CASE WHEN ${table}${isProcessed} THEN ${layout.presentTime('processedAt')} END`
  return `${key}, ${processedAt} = coalesce(${table}${processedAt}, ${processed})`
}

export interface Filling<Id> {
  /** Sent for each chunk. */
  readonly sql: string
  /** Fills a chunk behind `after`; `last` is the last row it looked at. */
  fill(after: Id | null): Promise<{ readonly rows: number; readonly keys: number; readonly last: Id | null }>
  /** Who may hold the rows that are left; '' when nobody is known. */
  holders(): Promise<string>
  /** Pause for others after a chunk that took `tookMs`. */
  pauseMs(tookMs: number): number
}

/** Gives up after so many passes on producers that write rows without a key as fast as they are filled. */
const MOST_PASSES = 20
const STALLED_PAUSE_MS = 200

export function fillStep<Id>(adoption: Adoption, filling: Filling<Id>): Step {
  const { layout, run, settings } = adoption
  const { idempotencyKey, processedAt } = layout.columns
  return {
    what: `give keys to rows without one, ${settings.chunk} at a time, until none is left`,
    sql: filling.sql,
    async needed() {
      const found = await columnsOf(layout.dialect, layout, run)
      // In a dry run the new columns are missing: every row needs them.
      const which = found.has(idempotencyKey) && found.has(processedAt) ? lackingOf(layout) : 'true'
      return (await run(`SELECT 1 AS some FROM ${layout.sqlTable} WHERE ${which} LIMIT 1`, [])).length > 0
    },
    async run() {
      await fillRows(adoption, filling)
      return 'done'
    },
  }
}

async function fillRows<Id>(adoption: Adoption, filling: Filling<Id>): Promise<void> {
  const { layout, run, settings } = adoption
  const { onWait, lockWaitMs, signal } = settings
  const count = async (which: string) =>
    Number((await run(`SELECT count(*) AS rows FROM ${layout.sqlTable} WHERE ${which}`, []))[0]?.rows)
  const report = reporter(await count(lackingOf(layout)), settings)
  let stalledSinceMs: number | undefined
  for (let passes = 1; passes <= MOST_PASSES; ) {
    const rows = await fillOnce(adoption, filling, report)
    const missing = await count(`${layout.c.idempotencyKey} IS NULL`)
    if (missing === 0) return
    if (rows > 0) {
      stalledSinceMs = undefined
      passes += 1
      continue
    }
    stalledSinceMs ??= performance.now()
    const holders = await filling.holders()
    const reason = `${missing} rows without a key are locked by others${holders && `: ${holders}`}`
    if (performance.now() - stalledSinceMs > lockWaitMs) throw new AdoptionBlocked(reason)
    onWait(reason)
    await pause(STALLED_PAUSE_MS, undefined, { signal })
  }
}

async function fillOnce<Id>(
  { settings: { chunk: limit, signal }, findings }: Adoption,
  filling: Filling<Id>,
  report: (rows: number) => void,
): Promise<number> {
  let filled = 0
  for (let after: Id | null = null; ; ) {
    signal?.throwIfAborted()
    const startedAtMs = performance.now()
    const chunk = await filling.fill(after)
    filled += chunk.rows
    findings.keysFilled += chunk.keys
    report(chunk.rows)
    if (chunk.rows < limit || chunk.last === null) return filled
    after = chunk.last
    await pause(filling.pauseMs(performance.now() - startedAtMs), undefined, { signal })
  }
}

/** Reports the rows done and the rate since the beginning. */
function reporter(expected: number, { onProgress }: AdoptSettings): (rows: number) => void {
  const startedAtMs = performance.now()
  let done = 0
  return (rows) => {
    done += rows
    const seconds = Math.max((performance.now() - startedAtMs) / 1_000, 0.001)
    const perSecond = Math.round(done / seconds)
    const label = 'giving keys'
    onProgress({ label, done, expected: Math.max(expected, done), unit: 'rows', perSecond })
  }
}
