/** The health of an outbox: its backlog against thresholds, and whether it can be read at all. */
import Type, { type Static } from 'typebox'
import type { Instant } from '../../../core/clock.ts'
import { BartlebyError } from '../../../core/errors.ts'
import { type Fixed, section } from '../../../core/settings/kinds.ts'
import { withDefaults } from '../../../core/settings/read.ts'
import { describeError } from '../../../core/thrown.ts'
import type { Integer, Session, Statement } from '../../../store/database.ts'
import { type Layout, perLayout, type Stored } from '../table/layout.ts'
import type { MeterSnapshot } from './meter.ts'
import type { OutboxHandle } from './outbox-handle.ts'

export const HEALTH_STATUSES = ['ok', 'degraded', 'unhealthy'] as const
export type HealthStatus = (typeof HEALTH_STATUSES)[number]

const limits = (description: string, degraded: number, unhealthy: number) => {
  const above = (status: HealthStatus, byDefault: number) =>
    Type.Number({
      minimum: 0,
      default: byDefault,
      description: `Above it the outbox is ${status}.`,
      allowed: 'a number from 0',
    })
  return section(
    description,
    { degraded: above('degraded', degraded), unhealthy: above('unhealthy', unhealthy) },
    'a mapping with degraded and unhealthy',
  )
}

/**
 * The oldest age says how late an outbox is, at any speed; the backlog may grow to what a burst brings and seconds take
 * away. With default settings all attempts at a message end after some six minutes: one that keeps failing degrades,
 * and only what is stuck makes unhealthy.
 */
export const HealthSchema = section(
  'Above which numbers an outbox is not well.',
  {
    backlog: limits('Messages that wait.', 10_000, 100_000),
    oldestAgeSeconds: limits('Age of the oldest message that waits.', 60, 600),
    failureRatio: limits('Share of deliveries that failed lately.', 0.1, 0.5),
  },
  'a mapping with backlog, oldestAgeSeconds and failureRatio',
)

export type HealthThresholds = Fixed<Static<typeof HealthSchema>>
type Threshold = HealthThresholds['backlog']

export const DEFAULT_THRESHOLDS = withDefaults(HealthSchema, {})

/** Fewer deliveries say nothing: one failure in a quiet minute would be all of them. */
export const FEWEST_ATTEMPTS = 10

export type HealthNumbers = Pick<Backlog, 'backlog' | 'oldestAgeSeconds'> &
  Pick<MeterSnapshot, 'failureRatio' | 'attempts'>

export interface OutboxHealth {
  readonly status: HealthStatus
  /** One for each number above its threshold, the worst first. */
  readonly reasons: readonly string[]
}

export function judge(numbers: HealthNumbers, thresholds: HealthThresholds): OutboxHealth {
  const { backlog, oldestAgeSeconds, failureRatio, attempts } = numbers
  const verdicts = [
    measured('backlog', backlog, thresholds.backlog),
    measured('oldestAgeSeconds', Math.floor(oldestAgeSeconds), thresholds.oldestAgeSeconds),
    measured('failureRatio', attempts < FEWEST_ATTEMPTS ? 0 : failureRatio, thresholds.failureRatio),
  ]
  const ranked = (status: HealthStatus) => HEALTH_STATUSES.indexOf(status)
  const worstFirst = verdicts.toSorted((a, b) => ranked(b.status) - ranked(a.status))
  return {
    status: worstOf(verdicts.map(({ status }) => status)),
    reasons: worstFirst.flatMap(({ reason }) => reason ?? []),
  }
}

function measured(name: keyof HealthThresholds, value: number, { degraded, unhealthy }: Threshold) {
  const shown = Math.round(value * 1_000) / 1_000
  const above = (threshold: number) => `${name} is ${shown}, above ${threshold}`
  if (value > unhealthy) return { status: 'unhealthy', reason: above(unhealthy) } as const
  if (value > degraded) return { status: 'degraded', reason: above(degraded) } as const
  return { status: 'ok', reason: null } as const
}

/** `ok` when there are none. */
export const worstOf = (statuses: readonly HealthStatus[]): HealthStatus =>
  HEALTH_STATUSES.findLast((status) => statuses.includes(status)) ?? 'ok'

export interface Trouble {
  /** For everybody. */
  readonly what: 'its database cannot be read' | 'its table is no outbox' | 'its database is slow to answer'
  /** For those with a token. */
  readonly detail: string
}

export type Looked =
  | { readonly ok: true; readonly backlog: Backlog }
  | { readonly ok: false; readonly trouble: Trouble }

export async function lookAt(handle: OutboxHandle, now: Instant): Promise<Looked> {
  try {
    const layout = await handle.layout()
    const backlog = await handle.db.session('outbox.backlog', (session) => readBacklog(session, layout, now))
    return { ok: true, backlog }
  } catch (thrown) {
    return { ok: false, trouble: troubleOf(thrown) }
  }
}

function troubleOf(thrown: unknown): Trouble {
  const detail = describeError(thrown).errorMessage
  const isNoOutbox = thrown instanceof BartlebyError && NO_OUTBOX.has(thrown.code)
  return { what: isNoOutbox ? 'its table is no outbox' : 'its database cannot be read', detail }
}

const NO_OUTBOX: ReadonlySet<string> = new Set(['outbox_table_missing', 'outbox_columns_missing'])

/** An outbox that cannot be read is unhealthy. */
export function healthOf({ meter, thresholds }: OutboxHandle, looked: Looked): OutboxHealth {
  if (!looked.ok) {
    const { what, detail } = looked.trouble
    return { status: 'unhealthy', reasons: [`${what}: ${detail}`] }
  }
  const { failureRatio, attempts } = meter.snapshot()
  return judge({ ...looked.backlog, failureRatio, attempts }, thresholds)
}

export interface Backlog {
  /** Messages still to be delivered. */
  readonly backlog: number
  /** Of these, failed before. */
  readonly failedPending: number
  /** Of the oldest of these; 0 when there is none. */
  readonly oldestAgeSeconds: number
  readonly dead: number
}

type BacklogRow = Stored<Omit<Backlog, 'oldestAgeSeconds'>> & { readonly oldest: Integer | null }

/** Failed before and waiting. */
export const failedOf = ({ c, pending }: Layout): string => `${c.retryCount} > 0 AND ${pending}`

/** Dead and not discarded: discarded rows count as processed. */
export const deadOf = ({ c }: Layout): string => `${c.deadAt} IS NOT NULL AND ${c.processedAt} IS NULL`

/**
 * One statement, so that all numbers are of one moment. Read from small indexes alone, whose conditions stand here word
 * for word: a million waiting rows take some 100 ms after a vacuum, ten times that before.
 */
export const backlogStatementOf = perLayout((layout): Statement => {
  const { c, sqlTable: table } = layout
  return layout.statement(
    'backlog',
    `SELECT waiting.backlog, waiting.oldest, failed.failed AS "failedPending", dead.dead
     FROM (SELECT count(*) AS backlog, ${layout.finiteMicros('createdAt', `min(${c.createdAt})`)} AS oldest
           FROM ${table} WHERE ${layout.pending}) AS waiting
     CROSS JOIN (SELECT count(*) AS failed FROM ${table} WHERE ${failedOf(layout)}) AS failed
     CROSS JOIN (SELECT count(*) AS dead FROM ${table} WHERE ${deadOf(layout)}) AS dead`,
    { bigints: true },
  )
})

/** Ages are up to `now`. */
export async function readBacklog(session: Session, layout: Layout, now: Instant): Promise<Backlog> {
  const [row] = await session.rows<BacklogRow>(backlogStatementOf(layout))
  if (row === undefined) throw new Error('a count gave no row')
  const { oldest } = row
  return {
    backlog: Number(row.backlog),
    failedPending: Number(row.failedPending),
    // Clocks of other machines may be ahead.
    oldestAgeSeconds: oldest === null ? 0 : Math.max(0, Number(now - BigInt(oldest)) / 1e6),
    dead: Number(row.dead),
  }
}
