/**
 * What one client knows about the letters that nobody else touches: after every acknowledged call exactly what became
 * of each, after a call whose answer was lost two possibilities. The store must show one of them, and nothing else.
 */

/** Where a message and its letter are. */
export interface State {
  /** What was done to the letter, in order; none means that there is no letter. */
  readonly acts: readonly string[]
  readonly status: 'Pending' | 'Resolved' | 'Expired' | 'none'
  /** Whether an item of it is in the queue, and whether it lies in the dead queue. */
  readonly queued: boolean
  readonly dead: boolean
  /** Whether it has a dead queue to go back to: it died in its queue once. Nobody shows this. */
  readonly homed: boolean
}

/** What the store shows of a message. */
export type Sight = Omit<State, 'homed'>

export const NOTHING: State = { acts: [], status: 'none', queued: false, dead: false, homed: false }

export type Verb =
  | 'produce'
  | 'capture'
  | 'retry'
  | 'discard'
  | 'expire'
  | 'restore'
  | 'complete'
  | 'die'
  | 'take'

/** What a call makes of a state. The caller makes only calls that are legal in it. */
export function after(verb: Verb, state: State): State {
  const act = (name: string, change: Partial<State>): State => ({
    ...state,
    ...change,
    acts: [...state.acts, name],
  })
  switch (verb) {
    case 'produce':
      return { ...state, queued: true }
    case 'capture':
      return act('capture', { status: 'Pending' })
    case 'retry':
      return act('retry', { status: 'Resolved', queued: true, dead: false })
    case 'discard':
      return act('discard', { status: 'Resolved', dead: false })
    case 'expire':
      return act('expire', { status: 'Expired', dead: false })
    case 'restore':
      return act('restore', { status: 'Pending', queued: false, dead: state.homed })
    case 'complete':
      return state.status === 'none' ? { ...state, queued: false } : act('confirm', { queued: false })
    case 'die': {
      const name = state.status === 'none' ? 'capture' : 'reopen'
      return act(name, { status: 'Pending', queued: false, dead: true, homed: true })
    }
    case 'take':
      return act('complete', { status: 'Resolved', dead: false })
  }
}

export class Ledger {
  readonly #possible = new Map<string, readonly State[]>()
  /** How many calls were acknowledged, and how many answers were lost. */
  acknowledged = 0
  lost = 0

  payloads(): readonly string[] {
    return [...this.#possible.keys()]
  }

  /** Payloads whose state is known and passes. */
  those(test: (state: State) => boolean): string[] {
    return [...this.#possible].flatMap(([payload, states]) => {
      const [only, ...others] = states
      return only !== undefined && others.length === 0 && test(only) ? [payload] : []
    })
  }

  states(payload: string): readonly State[] {
    return this.#possible.get(payload) ?? [NOTHING]
  }

  /** The answer of a call on these came, or did not. */
  settle(verb: Verb, payloads: readonly string[], outcome: 'applied' | 'unknown'): void {
    if (outcome === 'applied') this.acknowledged++
    else this.lost++
    for (const payload of payloads) {
      const before = this.states(payload)
      const changed = before.map((state) => after(verb, state))
      this.#possible.set(payload, outcome === 'applied' ? changed : [...before, ...changed])
    }
  }

  /** What the store shows of a payload; gives a complaint when it could not have come to that. */
  observe(payload: string, seen: Sight): string | null {
    const possible = this.states(payload)
    const match = possible.find((state) => show(state) === show(seen))
    if (match === undefined) {
      return `'${payload}' is ${show(seen)}, and should be ${possible.map(show).join(' or ')}`
    }
    this.#possible.set(payload, [match])
    return null
  }
}

const show = ({ acts, status, queued, dead }: Sight): string =>
  `${status} [${acts.join(', ')}]${queued ? ' queued' : ''}${dead ? ' in the dead queue' : ''}`
