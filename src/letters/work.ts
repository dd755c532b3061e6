/** One transaction of the office: the store's transaction, its count changes, and effects that wait for its commit. */
import type { Clock, Instant } from '../core/clock.ts'
import { storableText } from '../core/content.ts'
import type { Log } from '../core/log.ts'
import { recordHistory } from '../history/record.ts'
import type { Database, Transaction } from '../store/database.ts'
import { Runs } from '../work/runs.ts'
import { OFFICE } from './letter.ts'
import { LetterChanges } from './numbers/counts.ts'

export interface OfficeWork {
  readonly tx: Transaction
  readonly now: Instant
  /** Written with the commit. */
  readonly letters: LetterChanges
  /** Runs once the transaction is durable, never after a rollback. */
  afterCommit(effect: () => void): void
}

/** Runs `act` in one transaction; its counts are durable when this returns. */
export async function inOffice<T>(
  db: Database,
  clock: Clock,
  verb: string,
  act: (work: OfficeWork) => Promise<T>,
): Promise<T> {
  const { result, effects } = await db.transaction(verb, async (tx) => {
    const effects: (() => void)[] = []
    const letters = new LetterChanges()
    const now = clock.now()
    const work = { tx, now, letters, afterCommit: (effect: () => void) => effects.push(effect) }
    const result = await act(work)
    letters.write(tx, now)
    return { result, effects }
  })
  for (const effect of effects) effect()
  return result
}

/** Steps are transactions of the office; history keeps what people did. */
export type OfficeRuns = Runs<OfficeWork>

export const officeRuns = (
  db: Database,
  clock: Clock,
  log: Log,
  { carriesOut = true }: { readonly carriesOut?: boolean } = {},
): OfficeRuns =>
  new Runs({
    db,
    clock,
    log,
    carriesOut,
    inWork: (verb, act) => inOffice(db, clock, verb, act),
    record: async ({ tx, now }, { id, kind, expected, done, skipped, failed }, { act, actor, notes }) => {
      await recordHistory(tx, [
        {
          engine: OFFICE,
          operation: `run.${act}`,
          status: 'Succeeded',
          instanceId: null,
          correlationId: id,
          createdAt: now,
          durationMs: 0,
          actor: storableText(actor),
          notes: storableText(notes),
          output: Buffer.from(JSON.stringify({ kind, expected, done, skipped, failed })),
        },
      ])
    },
  })
