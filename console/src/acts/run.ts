/** An act on many letters as it goes on: its words, its numbers, and what is kept of it. */
import type { LetterFilter, LetterKey } from '../api/types.ts'

export type Act = 'retry' | 'discard' | 'restore'

/** `interrupted`: its tab was loaded anew, or its session ended. */
export type RunState = 'running' | 'paused' | 'done' | 'cancelled' | 'interrupted'

export interface FailedLetter extends LetterKey {
  readonly reason: string
}

/** What became of letters that a run sent back; of the first ones, where they were many. */
export interface RunOutcomes {
  readonly asked: number
  readonly confirmed: number
  readonly returned: number
  /** The console looks no more. */
  readonly isFinal: boolean
}

/** What was decided in the plan. */
export interface RunPlan {
  readonly act: Act
  /** `Retry 120 letters of …`. */
  readonly sentence: string
  readonly what: string
  /** Which letters, as it was asked for: to plan again. */
  readonly filter: LetterFilter
  /** The lists that are walked, one after the other; none when `keys` are given. */
  readonly walks: readonly LetterFilter[]
  readonly keys: readonly LetterKey[] | null
  readonly planned: number
  readonly reason: string
  readonly perSecond: number | null
}

export interface Run extends RunPlan {
  readonly id: string
  readonly by: string
  readonly state: RunState
  /** Why it paused by itself. */
  readonly trouble: string | null
  readonly done: number
  /** They had moved on before their turn. */
  readonly skipped: number
  readonly failed: number
  /** The first of them. */
  readonly failures: readonly FailedLetter[]
  readonly startedAt: string
  readonly endedAt: string | null
  readonly outcomes: RunOutcomes | null
}

export const newRun = (plan: RunPlan, id: string, by: string, startedAt: string): Run => ({
  ...plan,
  id,
  by,
  state: 'running',
  trouble: null,
  done: 0,
  skipped: 0,
  failed: 0,
  failures: [],
  startedAt,
  endedAt: null,
  outcomes: null,
})

/** Letters whose turn has not come: what is left of `planned`. */
export const remainingOf = ({ planned, done, skipped, failed }: Run): number =>
  planned - done - skipped - failed

export const isActive = ({ state }: Run): boolean => state === 'running' || state === 'paused'

/** How what is done to a letter is called once it is done. */
export const DONE_WORDS: Readonly<Record<Act, string>> = {
  retry: 'sent',
  discard: 'discarded',
  restore: 'restored',
}

/** How many of `asked` are neither confirmed nor returned. */
export const unconfirmedOf = ({ asked, confirmed, returned }: RunOutcomes): number =>
  asked - confirmed - returned

/** A run as it is kept for the next load of the tab: then nobody is at it any more. */
export const afterReload = (run: Run, at: string): Run =>
  isActive(run)
    ? { ...run, state: 'interrupted', endedAt: at }
    : run.outcomes === null
      ? run
      : { ...run, outcomes: { ...run.outcomes, isFinal: true } }

/** How many per second, and how long the rest takes at that pace; null before it can be told. */
export function paceOf(
  run: Run,
  nowMs: number,
): { readonly perSecond: number; readonly leftMs: number } | null {
  const tried = run.done + run.skipped + run.failed
  const tookMs = nowMs - new Date(run.startedAt).getTime()
  if (tried < 4 || tookMs <= 0) return null
  const perMs = tried / tookMs
  return { perSecond: perMs * 1_000, leftMs: remainingOf(run) / perMs }
}
