/**
 * A transition of one letter: its row in a new version, the counts, what lies in its dead queue and exactly one
 * history row, all in the transaction in which the letter was locked.
 */
import type { Instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { type Integer, sql } from '../db/database.ts'
import { recordHistory } from '../history/record.ts'
import { activityOf } from './activity.ts'
import { storable } from './death-note.ts'
import { type Act, isUnconfirmed, type Letter, type LetterStatus, STATUS } from './letter.ts'
import type { OfficeWork } from './work.ts'

/** What a letter becomes. Everything about its resolution is decided anew by every transition. */
export interface Outcome {
  readonly status: LetterStatus
  readonly resolution: Act | null
  readonly resolvedAt: Instant | null
  readonly resolvedBy: string | null
  readonly notes: string | null
  readonly sentAs: string | null
  readonly sentTo: string | null
  /** The redrive that sent it; left out: none. */
  readonly redrive?: number | undefined
}

/** What the history row says about it. */
export interface Trace {
  readonly act: Act
  /** What the row calls the act, where that is not its name. */
  readonly operation?: string | undefined
  readonly actor: string
  readonly notes: string | null
  readonly input?: Uint8Array | null
  readonly output?: Uint8Array | null
}

/** HTTP allows notes a quarter of this. */
const MAX_SAID_BYTES = 16_384

/** What people say, as both stores take it. */
export function said(text: string): string
export function said(text: string | null): string | null
export function said(text: string | null): string | null {
  return text === null ? null : storable(text, MAX_SAID_BYTES)
}

/** One row by primary key, and only in the version in which it was locked. */
const writeOutcome = sql(
  'letters.transition',
  `UPDATE bartleby.letters SET status = $3, version = version + 1, resolution = $4, resolved_at = $5, resolved_by = $6,
     notes = $7, sent_as = $8, sent_to = $9, redrive = $10, expired_at = $11, confirmed_at = NULL
   WHERE id = $1 AND version = $2 RETURNING drawer`,
)

/** Makes the letter what `outcome` says and files `trace`. Gives the letter as it is now. */
export async function transition(
  work: OfficeWork,
  letter: Letter,
  outcome: Outcome,
  trace: Trace,
): Promise<Letter> {
  const expiredAt = outcome.status === 'Expired' ? work.now : null
  const [row] = await work.tx.rows<{ drawer: Integer }>(
    writeOutcome,
    letter.id,
    letter.version,
    STATUS[outcome.status],
    outcome.resolution,
    outcome.resolvedAt,
    said(outcome.resolvedBy),
    said(outcome.notes),
    outcome.sentAs,
    outcome.sentTo,
    outcome.redrive ?? null,
    expiredAt,
  )
  if (row === undefined) throw new Error(`letter ${letter.id} changed although it was locked`)
  const drawer = Number(row.drawer)
  work.letters.moved({ drawer, status: STATUS[letter.status] }, { drawer, status: STATUS[outcome.status] })
  if (isUnconfirmed(letter)) work.letters.add(drawer, STATUS.unconfirmed, -1)
  if (outcome.resolution === 'retry') work.letters.add(drawer, STATUS.unconfirmed, 1)
  const activity = activityOf(trace.act)
  if (activity !== null) work.letters.acted(activity, drawer, 1)
  const version = letter.version + 1
  await recordHistory(work.tx, [
    {
      engine: letter.engine,
      operation: trace.operation ?? trace.act,
      status: 'Succeeded',
      instanceId: letter.instanceId === letter.correlationId ? null : letter.instanceId,
      correlationId: letter.correlationId,
      createdAt: work.now,
      durationMs: 0,
      letterId: letter.id,
      letterVersion: version,
      actor: said(trace.actor),
      notes: said(trace.notes),
      input: trace.input ?? null,
      output: trace.output ?? null,
    },
  ])
  return { ...letter, ...outcome, redrive: outcome.redrive ?? null, version, confirmedAt: null, expiredAt }
}

/** How refusals name an act. */
const PARTICIPLES = {
  retry: 'retried',
  discard: 'discarded',
  expire: 'expired',
  restore: 'restored',
} as const

/** Refuses the act unless the letter has the status that it needs and nobody holds it in its dead queue. */
export function insistOnStatus(
  letter: Letter,
  act: keyof typeof PARTICIPLES,
  allowed: readonly LetterStatus[],
): void {
  if (!allowed.includes(letter.status)) {
    const needed = allowed.join(' or ')
    throw failure('letter_status_wrong', { act: PARTICIPLES[act], status: letter.status, needed })
  }
  if (letter.place?.leased === true) throw failure('letter_leased', { queue: letter.deadQueue ?? '' })
}
