/** The bounds of repairs, for one letter and for a plan, and what is said of those that exceed them. */
import { type BartlebyError, refuse } from '../../core/errors.ts'
import type { RepairedLetter } from './repair-thread.ts'

/** Largest payload, before and after its repair. */
export const MOST_PAYLOAD_BYTES = 16 * 1_048_576
export const LETTER_MS = 1_000

export const TOO_LARGE = 'the payload would be larger than 16 MiB'
export const TOO_LONG = `the repair took longer than ${LETTER_MS / 1_000} s`
export const TOO_MUCH_MEMORY = 'the repair used too much memory'

/** Exit code of a process whose thread has run out of memory. */
export const OUT_OF_MEMORY = 12

/** What the letters of a plan may cost together. */
const PLAN_BOUNDS = {
  /** Letters that take too long or too much memory: each costs a second, or a process. */
  broken: 10,
  /** Work on all letters. A million letters of a kilobyte and a simple mapping take two minutes. */
  workMs: 300_000,
  /** Growth of all payloads: the edits are kept in the store. */
  growthBytes: 1_073_741_824,
}
const GIB = 1_073_741_824
const REMEDY = 'make it simpler, or plan for fewer letters'

/** What the recipe of a plan has cost so far. */
export class RepairBudget {
  #tooLong = 0
  #tooMuchMemory = 0
  #workMs = 0
  #growthBytes = 0

  /** Refuses the plan, with the reason, when it costs more than it may. */
  spend(trials: readonly RepairedLetter[]): void {
    const { broken, workMs, growthBytes } = PLAN_BOUNDS
    for (const trial of trials) {
      const refusal = trial.ok ? null : trial.reason
      if (refusal === TOO_LONG) this.#tooLong++
      if (refusal === TOO_MUCH_MEMORY) this.#tooMuchMemory++
      this.#workMs += trial.workMs
      this.#growthBytes += trial.growthBytes
    }
    const ended = this.#tooLong + this.#tooMuchMemory
    if (ended >= broken) throw tooCostly(`it ${this.#whyEnded()} for each of ${ended} letters`)
    if (this.#workMs > workMs)
      throw tooCostly(`it took longer than the ${workMs / 1_000} s that the letters of a plan have together`)
    if (this.#growthBytes > growthBytes)
      throw tooCostly(
        `it makes the payloads of the plan ${this.#growthBytes} bytes larger than they are, at most ${growthBytes / GIB} GiB is allowed`,
      )
  }

  #whyEnded(): string {
    const took = `took longer than ${LETTER_MS / 1_000} s`
    if (this.#tooMuchMemory === 0) return took
    return this.#tooLong === 0 ? 'used too much memory' : `${took} or used too much memory`
  }
}

const tooCostly = (reason: string): BartlebyError => refuse('repair', `${reason}; ${REMEDY}`)
