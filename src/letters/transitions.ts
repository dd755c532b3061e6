/**
 * The table of transitions: for every act on a letter its statuses, columns, counts and word in history. `change.ts` writes by it,
 * `verify` checks by it. Columns in neither list keep their values: a reopened letter still names its last retry and redrive.
 */
import { failure } from '../core/errors.ts'
import { kindOf, sourceKinds } from './kinds.ts'
import type { Letter, LetterStatus } from './letter.ts'
import type { Outcomes } from './numbers/counts.ts'
import type { ActivityName } from './numbers/shapes.ts'

const RESOLUTION = [
  'resolution',
  'resolved_at',
  'resolved_by',
  'notes',
  'confirmed_at',
  'expired_at',
] as const
const SENT = ['sent_as', 'sent_to', 'redrive'] as const

/** `position`: where it is, and its lease in a dead queue. `failure`: the newest one. */
export type StateColumn =
  | (typeof RESOLUTION)[number]
  | (typeof SENT)[number]
  | 'position'
  | 'failure'
  | 'drawer'
  | 'dequeue_count'

export interface Transition {
  /** Empty: a new letter. */
  readonly from: readonly LetterStatus[]
  /** null: unchanged. */
  readonly to: LetterStatus | 'removed' | null
  readonly sets: readonly StateColumn[]
  readonly resets: readonly StateColumn[]
  /** Counted as, over time. */
  readonly activity?: ActivityName
  /** Counted as, for the redrive that sent the letter. */
  readonly outcome?: keyof Outcomes
  /** Operation of its history row, unless a worker's run brings its own. null: no row and no version. */
  readonly word: string | null
}

const ANY_STATUS = ['Pending', 'Resolved', 'Expired'] as const

export const TRANSITIONS = {
  capture: {
    from: [],
    to: 'Pending',
    sets: ['failure', 'drawer', 'dequeue_count', 'position'],
    resets: [...RESOLUTION, ...SENT],
    activity: 'arrived',
    word: 'capture',
  },
  /** The item of its retry died, or a new failure was reported. */
  reopen: {
    from: ANY_STATUS,
    to: 'Pending',
    sets: ['failure', 'drawer', 'dequeue_count', 'position'],
    resets: RESOLUTION,
    activity: 'returned',
    outcome: 'returned',
    word: 'reopen',
  },
  /** About to leave over a network. Written first, so that a crash can be told from a send. */
  intend: {
    from: ['Pending'],
    to: null,
    sets: ['redrive'],
    resets: [],
    word: null,
  },
  /** It did not leave after all. */
  forgo: {
    from: ['Pending'],
    to: null,
    sets: [],
    resets: ['redrive'],
    word: null,
  },
  retry: {
    from: ['Pending'],
    to: 'Resolved',
    sets: ['resolution', 'resolved_at', 'resolved_by', 'notes', ...SENT],
    resets: ['confirmed_at', 'expired_at', 'position'],
    activity: 'retried',
    word: 'retry',
  },
  discard: {
    from: ['Pending'],
    to: 'Resolved',
    sets: ['resolution', 'resolved_at', 'resolved_by', 'notes', 'redrive'],
    resets: ['confirmed_at', 'expired_at', 'sent_as', 'sent_to', 'position'],
    activity: 'discarded',
    word: 'discard',
  },
  /** Completed by a consumer of its dead queue, or found to have arrived. */
  complete: {
    from: ['Pending'],
    to: 'Resolved',
    sets: ['resolution', 'resolved_at', 'resolved_by', 'notes', 'sent_as', 'sent_to'],
    resets: ['confirmed_at', 'expired_at', 'redrive', 'position'],
    word: 'complete',
  },
  /** Given up: it has a time of expiry and none of resolution. */
  expire: {
    from: ['Pending'],
    to: 'Expired',
    sets: ['resolution', 'resolved_by', 'notes', 'expired_at'],
    resets: ['resolved_at', 'confirmed_at', ...SENT, 'position'],
    activity: 'expired',
    word: 'expire',
  },
  restore: {
    from: ['Resolved', 'Expired'],
    to: 'Pending',
    sets: ['dequeue_count'],
    resets: [...RESOLUTION, ...SENT],
    word: 'restore',
  },
  confirm: {
    from: ['Resolved'],
    to: null,
    sets: ['confirmed_at'],
    resets: [],
    activity: 'confirmed',
    outcome: 'confirmed',
    word: 'confirm',
  },
  refile: {
    from: ANY_STATUS,
    to: null,
    sets: ['drawer'],
    resets: [],
    word: 'refile',
  },
  /** Asked for by users of its source; one history row for all. */
  erase: {
    from: ['Pending'],
    to: 'removed',
    sets: [],
    resets: [],
    word: 'remove',
  },
  /** Past its retention; one history row for all. */
  remove: {
    from: ['Resolved', 'Expired'],
    to: 'removed',
    sets: [],
    resets: [],
    word: 'remove',
  },
} as const satisfies Readonly<Record<string, Transition>>

export type TransitionName = keyof typeof TRANSITIONS

export const transitionOf = (act: TransitionName): Transition => TRANSITIONS[act]

/** Word of history for an act; sources with words of their own are engines of that name. */
export const wordOf = (act: TransitionName, engine: string): string | null =>
  kindOf(engine).words?.[act] ?? TRANSITIONS[act].word

/** Every word that history has for an act. */
export const wordsFor = (act: TransitionName): readonly string[] =>
  [TRANSITIONS[act].word, ...sourceKinds().map(({ words }) => words?.[act])].filter((word) => word != null)

const PARTICIPLES = {
  retry: 'retried',
  discard: 'discarded',
  expire: 'expired',
  restore: 'restored',
} as const

/** Throws unless the letter has the status that the act needs and nobody holds its lease. */
export function insistOnStatus(
  letter: Pick<Letter, 'status' | 'position' | 'deadQueue'>,
  act: keyof typeof PARTICIPLES,
): void {
  const { from } = transitionOf(act)
  if (!from.includes(letter.status)) {
    const needed = from.join(' or ')
    throw failure('letter_status_wrong', { act: PARTICIPLES[act], status: letter.status, needed })
  }
  if (letter.position?.leased === true) throw failure('letter_leased', { queue: letter.deadQueue ?? '' })
}
