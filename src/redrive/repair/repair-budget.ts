/** What the recipe of a plan has cost so far, held against what a plan may cost. */
import { type BartlebyError, refuse } from '../../core/errors.ts'
import { LETTER_MS, TOO_LONG, TOO_MUCH_MEMORY } from './repair-bounds.ts'
import type { RepairedLetter } from './repair-thread.ts'

/** What the letters of a plan may cost together. */
const PLAN_BOUNDS = {
  /** Letters that take too long or too much memory: each of them costs a second, or a process. */
  broken: 10,
  /** Work on all letters. A million letters of a kilobyte and a simple mapping take two minutes. */
  workMs: 300_000,
  /** By how much all payloads together may grow: the edits are kept in the store. */
  growthBytes: 1_073_741_824,
}
const GIB = 1_073_741_824
const REMEDY = 'make it simpler, or plan for fewer letters'

/** Of one plan. */
export class RepairBudget {
  #tooLong = 0
  #tooMuchMemory = 0
  #workMs = 0
  #growthBytes = 0

  /** Refuses the plan when these letters are more than it may cost, and says of what. */
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
