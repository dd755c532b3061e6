/** Acts on what is chosen in a list: on one letter at once, on more, and to another queue, through a plan. */
import { isPossible, PAST_WORDS } from '../acts/act.ts'
import { usePlan } from '../acts/plan-context.ts'
import { useLetterActs } from '../acts/use-letter-acts.ts'
import type { RedriveAction } from '../api/redrive-types.ts'
import type { LetterItem } from '../api/types.ts'
import { discardRefusal, type Refusable, restoreRefusal, retryRefusal } from '../letter/refusals.ts'
import type { LetterList } from './use-letter-list.ts'
import type { Selection } from './use-selection.ts'

export interface ManyActs {
  readonly retry: () => void
  readonly move: () => void
  readonly discard: () => void
  readonly restore: () => void
  /** Why each is not possible with what is chosen; null: it is. */
  readonly refusals: Readonly<Record<RedriveAction, string | null>>
}

const REFUSALS: Readonly<Record<RedriveAction, (letter: Refusable) => string | null>> = {
  retry: retryRefusal,
  move: retryRefusal,
  discard: discardRefusal,
  restore: restoreRefusal,
}

const NOTHING_CHOSEN = 'Nothing selected: move to a letter with j, or select some with x.'

export interface ManyActsOptions {
  readonly text: string
  readonly list: LetterList
  readonly selection: Selection
  /** The row that keys act on when nothing is selected. */
  readonly current: LetterItem | undefined
  /** Asks for the reason for one letter. */
  readonly askWhy: (letter: LetterItem) => void
}

export function useManyActs({ text, list, selection, current, askWhy }: ManyActsOptions): ManyActs {
  const plan = usePlan()
  const acts = useLetterActs()
  const chosen = selection.isEmpty ? (current === undefined ? [] : [current]) : selection.letters
  const possible = (act: RedriveAction) => chosen.filter((letter) => REFUSALS[act](letter) === null)

  const refusalOf = (act: RedriveAction): string | null => {
    if (selection.isAll) {
      return isPossible(act, list.filter) ? null : `No letter of this list can be ${PAST_WORDS[act]}.`
    }
    const [first] = chosen
    if (first === undefined) return NOTHING_CHOSEN
    if (possible(act).length > 0) return null
    return chosen.length === 1
      ? REFUSALS[act](first)
      : `None of the selected letters can be ${PAST_WORDS[act]}.`
  }
  const perform = (act: RedriveAction, one: ((letter: LetterItem) => void) | null) => () => {
    if (selection.isAll) {
      const what = text === '' ? 'all letters' : `letters that match ${text}`
      return plan({ act, filter: list.filter, what })
    }
    const letters = possible(act)
    const [first] = letters
    if (first === undefined) return
    if (letters.length === 1 && one !== null) return one(first)
    const keys = letters.map(({ engine, rowKey }) => ({ engine, rowKey }))
    const others = chosen.length - letters.length
    const chosenOnes = letters.length === 1 ? 'the selected letter' : `${letters.length} selected letters`
    const what = others === 0 ? chosenOnes : `${chosenOnes} (${others} more cannot be ${PAST_WORDS[act]})`
    plan({ act, filter: list.filter, keys, what })
  }
  return {
    retry: perform('retry', (letter) => void acts.retry(letter)),
    move: perform('move', null),
    discard: perform('discard', askWhy),
    restore: perform('restore', (letter) => void acts.restore(letter)),
    refusals: {
      retry: refusalOf('retry'),
      move: refusalOf('move'),
      discard: refusalOf('discard'),
      restore: refusalOf('restore'),
    },
  }
}
