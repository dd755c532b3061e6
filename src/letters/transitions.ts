/**
 * The table of transitions: for every act on a letter, from which status to which, what it writes, what it empties, what it is counted
 * as and what history calls it. `change.ts` writes by it and `verify` checks by it.
 *
 * Columns in neither list stay as they are: a letter that died again still says what its last retry made, and for which redrive.
 */
import { failure } from '../core/errors.ts'
import { kindOf, sourceKinds } from './kinds.ts'
import type { Letter, LetterStatus } from './letter.ts'
import type { Outcomes } from './numbers/counts.ts'
import type { ActivityName } from './numbers/shapes.ts'

/** What is known of how a letter ended. */
const RESOLUTION = [
  'resolution',
  'resolved_at',
  'resolved_by',
  'notes',
  'confirmed_at',
  'expired_at',
] as const
/** What a retry made, and for which redrive. */
const SENT = ['sent_as', 'sent_to', 'redrive'] as const

/** Columns of a letter's state. `place`: where it lies in a dead queue, with its lease. `failure`: what stands on it. */
export type StateColumn =
  | (typeof RESOLUTION)[number]
  | (typeof SENT)[number]
  | 'place'
  | 'failure'
  | 'drawer'
  | 'dequeue_count'

export interface Transition {
  /** Empty: there was no letter. */
  readonly from: readonly LetterStatus[]
  /** null: it stays what it is. */
  readonly to: LetterStatus | 'removed' | null
  readonly sets: readonly StateColumn[]
  readonly resets: readonly StateColumn[]
  /** What it is counted as over time. */
  readonly activity: ActivityName | null
  /** What it is counted as for the redrive that sent the letter. */
  readonly outcome: keyof Outcomes | null
  /** The operation of its history row; the run of a worker that led to it has its own. null: it is no version of its own either. */
  readonly word: string | null
}

const ANY_STATUS = ['Pending', 'Resolved', 'Expired'] as const

export const TRANSITIONS = {
  capture: {
    from: [],
    to: 'Pending',
    sets: ['failure', 'drawer', 'dequeue_count', 'place'],
    resets: [...RESOLUTION, ...SENT],
    activity: 'arrived',
    outcome: null,
    word: 'capture',
  },
  /** It failed again: the item of its retry died, or somebody reported a new failure. */
  reopen: {
    from: ANY_STATUS,
    to: 'Pending',
    sets: ['failure', 'drawer', 'dequeue_count', 'place'],
    resets: RESOLUTION,
    activity: 'returned',
    outcome: 'returned',
    word: 'reopen',
  },
  /** Its message is about to leave over a network, for a redrive or for nobody's. Who finds it later can tell whether it went. */
  intend: {
    from: ['Pending'],
    to: null,
    sets: ['redrive'],
    resets: [],
    activity: null,
    outcome: null,
    word: null,
  },
  /** Its message did not leave, as far as anybody knows. */
  forgo: {
    from: ['Pending'],
    to: null,
    sets: [],
    resets: ['redrive'],
    activity: null,
    outcome: null,
    word: null,
  },
  retry: {
    from: ['Pending'],
    to: 'Resolved',
    sets: ['resolution', 'resolved_at', 'resolved_by', 'notes', ...SENT],
    resets: ['confirmed_at', 'expired_at', 'place'],
    activity: 'retried',
    outcome: null,
    word: 'retry',
  },
  discard: {
    from: ['Pending'],
    to: 'Resolved',
    sets: ['resolution', 'resolved_at', 'resolved_by', 'notes', 'redrive'],
    resets: ['confirmed_at', 'expired_at', 'sent_as', 'sent_to', 'place'],
    activity: 'discarded',
    outcome: null,
    word: 'discard',
  },
  /** What it was about is done: a consumer of its dead queue says so, or its message turns out to have arrived. */
  complete: {
    from: ['Pending'],
    to: 'Resolved',
    sets: ['resolution', 'resolved_at', 'resolved_by', 'notes', 'sent_as', 'sent_to'],
    resets: ['confirmed_at', 'expired_at', 'redrive', 'place'],
    activity: null,
    outcome: null,
    word: 'complete',
  },
  /** Given up, not resolved: it has a time of expiry, and none of resolution. */
  expire: {
    from: ['Pending'],
    to: 'Expired',
    sets: ['resolution', 'resolved_by', 'notes', 'expired_at'],
    resets: ['resolved_at', 'confirmed_at', ...SENT, 'place'],
    activity: 'expired',
    outcome: null,
    word: 'expire',
  },
  /** Its source has laid it into its dead queue. */
  restore: {
    from: ['Resolved', 'Expired'],
    to: 'Pending',
    sets: ['dequeue_count'],
    resets: [...RESOLUTION, ...SENT],
    activity: null,
    outcome: null,
    word: 'restore',
  },
  /** What a retry made was completed. */
  confirm: {
    from: ['Resolved'],
    to: null,
    sets: ['confirmed_at'],
    resets: [],
    activity: 'confirmed',
    outcome: 'confirmed',
    word: 'confirm',
  },
  /** It turns out to come from another queue. */
  refile: {
    from: ANY_STATUS,
    to: null,
    sets: ['drawer'],
    resets: [],
    activity: null,
    outcome: null,
    word: 'refile',
  },
  /** The users of its source ask for it. One row of history tells how many. */
  erase: {
    from: ['Pending'],
    to: 'removed',
    sets: [],
    resets: [],
    activity: null,
    outcome: null,
    word: 'remove',
  },
  /** Its time is over. One row of history tells how many. */
  remove: {
    from: ['Resolved', 'Expired'],
    to: 'removed',
    sets: [],
    resets: [],
    activity: null,
    outcome: null,
    word: 'remove',
  },
} as const satisfies Readonly<Record<string, Transition>>

export type TransitionName = keyof typeof TRANSITIONS

/** The row of an act, where the exact one does not matter. */
export const transitionOf = (act: TransitionName): Transition => TRANSITIONS[act]

/** What history calls an act on letters of an engine: sources with words of their own are engines of that name. */
export const wordOf = (act: TransitionName, engine: string): string | null =>
  kindOf(engine).words?.[act] ?? TRANSITIONS[act].word

/** Everything that history calls an act, whosever the letter. */
export const wordsFor = (act: TransitionName): readonly string[] =>
  [TRANSITIONS[act].word, ...sourceKinds().map(({ words }) => words?.[act])].filter((word) => word != null)

/** How refusals name the acts that operators ask for. */
const PARTICIPLES = {
  retry: 'retried',
  discard: 'discarded',
  expire: 'expired',
  restore: 'restored',
} as const

/** Refuses the act unless the letter has the status that it needs and nobody holds it in its dead queue. */
export function insistOnStatus(
  letter: Pick<Letter, 'status' | 'place' | 'deadQueue'>,
  act: keyof typeof PARTICIPLES,
): void {
  const { from } = transitionOf(act)
  if (!from.includes(letter.status)) {
    const needed = from.join(' or ')
    throw failure('letter_status_wrong', { act: PARTICIPLES[act], status: letter.status, needed })
  }
  if (letter.place?.leased === true) throw failure('letter_leased', { queue: letter.deadQueue ?? '' })
}
