/** Redrives in words. Pure. */
import { DONE_WORDS } from '../acts/act.ts'
import { waitWords } from '../acts/plan-words.ts'
import type {
  Redrive,
  RedriveAction,
  RedriveCanary,
  RedriveCounts,
  RedriveOrder,
  RedriveOutcome,
  RedriveState,
  RedriveStopRule,
} from '../api/redrive-types.ts'
import { isSending } from '../api/redrive-types.ts'
import { grouped, span } from '../time/format.ts'

export const STATE_WORDS: Readonly<Record<RedriveState, string>> = {
  planning: 'Planning',
  planned: 'Planned',
  canary: 'Canary',
  running: 'Running',
  paused: 'Paused',
  done: 'Done',
  stopped: 'Stopped',
  cancelled: 'Cancelled',
}

const NOUNS: Readonly<Record<RedriveAction, string>> = {
  retry: 'Retry',
  move: 'Move',
  discard: 'Discard',
  restore: 'Restore',
}

/** What it is called, whatever became of it since: `Retry of 1,204 letters`. */
export function titleOf({ action, counts, queue }: Pick<Redrive, 'action' | 'counts' | 'queue'>): string {
  const letters = counts.planned === 1 ? '1 letter' : `${grouped(counts.planned)} letters`
  return `${NOUNS[action]} of ${letters}${queue === null ? '' : ` to ${queue}`}`
}

export interface NumberWord {
  readonly outcome: RedriveOutcome | null
  readonly count: number
  readonly word: string
}

/** The numbers in one line: `37 sent · 37 confirmed · 0 returned · 326 left`. */
export function lineOf({ action, counts }: Pick<Redrive, 'action' | 'counts'>): string {
  const { sent, confirmed, returned, skipped, failed, remaining } = counts
  return [
    `${grouped(sent)} ${DONE_WORDS[action]}`,
    ...(isSending(action) ? [`${grouped(confirmed)} confirmed`, `${grouped(returned)} returned`] : []),
    ...(skipped === 0 ? [] : [`${grouped(skipped)} skipped`]),
    ...(failed === 0 ? [] : [`${grouped(failed)} failed`]),
    `${grouped(remaining)} left`,
  ].join(' · ')
}

/** What the planned letters come to: adds up to `planned`. */
export const partsOf = (action: RedriveAction, counts: RedriveCounts): readonly NumberWord[] => [
  // Of what was sent there is more to tell; what was discarded is just that.
  { outcome: isSending(action) ? null : 'confirmed', count: counts.sent, word: DONE_WORDS[action] },
  { outcome: 'skipped', count: counts.skipped, word: 'skipped' },
  { outcome: 'failed', count: counts.failed, word: 'failed' },
  { outcome: 'remaining', count: counts.remaining, word: 'left' },
]

/** What became of those that were sent: adds up to `sent`. Empty where nothing can be heard of them. */
export const outcomesOf = (action: RedriveAction, counts: RedriveCounts): readonly NumberWord[] =>
  isSending(action)
    ? [
        { outcome: 'confirmed', count: counts.confirmed, word: 'confirmed' },
        { outcome: 'returned', count: counts.returned, word: 'returned' },
        { outcome: 'unconfirmed', count: counts.unconfirmed, word: 'unconfirmed' },
      ]
    : []

/** `24.5 per second, about 3 min left`; null when neither is known. */
export function paceOf({ rateNow, secondsLeft }: Pick<Redrive, 'rateNow' | 'secondsLeft'>): string | null {
  const parts = [
    ...(rateNow === null || rateNow === 0 ? [] : [`${rateWords(rateNow)} per second now`]),
    ...(secondsLeft === null ? [] : [`about ${span(Math.max(1, secondsLeft) * 1_000)} left`]),
  ]
  return parts.length === 0 ? null : parts.join(', ')
}

function rateWords(rate: number): string {
  if (rate < 0.1) return 'less than 0.1'
  return rate < 10 ? String(Number(rate.toFixed(1))) : grouped(Math.round(rate))
}

/** That it survived restarts; null when it had to survive none. */
export function resumedWords(resumed: number): string | null {
  if (resumed === 0) return null
  return `Continued after a restart${resumed === 1 ? '' : resumed === 2 ? ', twice' : `, ${grouped(resumed)} times`}.`
}

export const rateTerm = (rate: number | null): string =>
  rate === null
    ? 'No limit'
    : `At most ${rate.toLocaleString('en-US', { maximumFractionDigits: 5 })} per second, to each destination`

export const canaryTerm = (canary: RedriveCanary | null): string =>
  canary === null
    ? 'None'
    : `${grouped(canary.letters)} first: it continues when ${canary.confirmPercent} % are confirmed, pauses if that is not known after ${waitWords(canary.waitSeconds)}`

export const stopTerm = (rule: RedriveStopRule | null): string =>
  rule === null
    ? 'None'
    : `Stops when more than ${rule.percent} % of the last ${grouped(rule.of)} outcomes are returns`

export const ORDER_TERMS: Readonly<Record<RedriveOrder, string>> = {
  key: 'Letters of one key as they were captured; different keys at once',
  capture: 'As they were captured, one after the other for each destination',
  none: 'No order',
}

const OUTCOME_WORDS: Readonly<Record<RedriveOutcome, string>> = {
  remaining: 'Remaining',
  confirmed: 'Confirmed',
  returned: 'Returned',
  unconfirmed: 'Unconfirmed',
  skipped: 'Skipped',
  failed: 'Failed',
  superseded: 'Superseded',
}

/** What became of a letter: where nothing leaves, what is done is done. */
export function outcomeWord(action: RedriveAction, outcome: RedriveOutcome): string {
  return outcome === 'confirmed' && !isSending(action)
    ? capitalised(DONE_WORDS[action])
    : OUTCOME_WORDS[outcome]
}

export const capitalised = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`

/** Why letters were not sent. */
const REASONS: Readonly<Record<string, string>> = {
  changed: 'Changed since they were planned',
  leased: 'Held by a consumer of their dead queue',
  gone: 'Removed since they were planned',
  in_other_redrive: 'Part of another redrive',
  order_blocked: 'Behind an earlier letter of their key',
  repair_refused: 'The repair does not apply to them',
  send_refused: 'Refused by their destination',
}

/** In words; a reason that is not known here is told under its name. */
export const reasonWords = (reason: string): string => REASONS[reason] ?? reason
