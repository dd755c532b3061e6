/** What the recipe of a plan has cost so far, held against what a plan may cost. */
import { type BartlebyError, failure } from '../core/errors.ts'
import { LETTER_MS, PLAN_BOUNDS, type PlanBounds, TOO_LONG, TOO_MUCH_MEMORY } from './repair/repair-bounds.ts'
import type { RepairTrial } from './repair/repairer.ts'

const GIB = 1_073_741_824
const REMEDY = 'make it simpler, or plan for fewer letters'

/** Of one plan. */
export class RepairBudget {
  readonly #bounds: PlanBounds
  #tooLong = 0
  #tooMuchMemory = 0
  #workMs = 0
  #growthBytes = 0

  constructor(bounds: PlanBounds = PLAN_BOUNDS) {
    this.#bounds = bounds
  }

  /** Refuses the plan when these letters are more than it may cost, and says of what. */
  spend(trials: readonly RepairTrial[]): void {
    const { broken, workMs, growthBytes } = this.#bounds
    for (const trial of trials) {
      if (trial.refusal === TOO_LONG) this.#tooLong++
      if (trial.refusal === TOO_MUCH_MEMORY) this.#tooMuchMemory++
      this.#workMs += trial.workMs
      this.#growthBytes += trial.growthBytes
    }
    if (this.#tooLong >= broken)
      throw refuse(`it took longer than ${LETTER_MS / 1_000} s for each of ${this.#tooLong} letters`)
    if (this.#tooMuchMemory >= broken)
      throw refuse(`it used too much memory for each of ${this.#tooMuchMemory} letters`)
    if (this.#workMs > workMs)
      throw refuse(`it took longer than the ${workMs / 1_000} s that the letters of a plan have together`)
    if (this.#growthBytes > growthBytes)
      throw refuse(
        `it makes the payloads of the plan ${this.#growthBytes} bytes larger than they are, at most ${growthBytes / GIB} GiB is allowed`,
      )
  }
}

const refuse = (reason: string): BartlebyError =>
  failure('parameter_invalid', { parameter: 'repair', reason: `${reason}; ${REMEDY}` })
