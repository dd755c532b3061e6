/**
 * Repairs letters by a recipe before they are sent, in a process that is started when needed, ended when idle and replaced when a recipe
 * broke it. The server itself never works on a payload, so it answers others whatever a recipe does.
 */
import { failure } from '../../core/errors.ts'
import { type Log, silentLog } from '../../core/log.ts'
import { goesToQueues, kindOf, type SourceName } from '../../letters/kinds.ts'
import type { LetterContent } from './apply-recipe.ts'
import type { Recipe } from './recipe.ts'
import { LETTER_MS, TOO_LONG } from './repair-bounds.ts'
import { RepairRunner, type RunEnd } from './repair-runner.ts'
import type { RepairedLetter, RepairTerms } from './repair-thread.ts'

export interface Repairable extends LetterContent {
  readonly source: SourceName
}

const IDLE_MS = 10_000

/** What the process gets at once: messages of some milliseconds for the server. A larger letter goes alone. */
const LETTERS_AT_ONCE = 64
const BYTES_AT_ONCE = 1_048_576

const NO_BYTES = new Uint8Array()

const refused = (reason: string, workMs = 0): RepairedLetter => ({
  ok: false,
  reason,
  workMs,
  growthBytes: 0,
})

/** Its maker closes it. */
export class Repairer {
  readonly #log: Log
  #runner: RepairRunner | null = null
  /** Runners that may not have ended yet. */
  readonly #leaving = new Set<Promise<void>>()
  /** Settles when all earlier letters are done. */
  #turn: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(log: Log = silentLog) {
    this.#log = log
  }

  /**
   * One result per letter, in order; fewer, but at least one, when `forMs` are over. Rejects when it is closed meanwhile or letters cannot
   * be repaired here; nothing is known of them then.
   */
  async repair(
    recipe: Recipe,
    letters: readonly Repairable[],
    { forMs = Number.POSITIVE_INFINITY, keepsPayloads = true }: Partial<RepairTerms> = {},
  ): Promise<readonly RepairedLetter[]> {
    const untilMs = performance.now() + forMs
    const repaired: RepairedLetter[] = []
    // Before this index letters go to the process one by one, to find the one that breaks it.
    let aloneUntil = 0
    while (repaired.length < letters.length) {
      const leftMs = untilMs - performance.now()
      if (repaired.length > 0 && leftMs < 0) break
      const from = repaired.length
      const reason = whyNot(recipe, letters[from])
      if (reason !== null) {
        repaired.push(refused(reason))
        continue
      }
      const some = portion(recipe, letters, from, from < aloneUntil ? 1 : LETTERS_AT_ONCE)
      const { done, broke } = await this.#inTurn(recipe, some, { forMs: leftMs, keepsPayloads })
      repaired.push(...done)
      if (broke === null || done.length === some.length) continue
      // A process that runs out of memory may take its answers on earlier letters with it.
      if (broke === TOO_LONG || some.length === 1) repaired.push(refused(broke, LETTER_MS))
      else aloneUntil = from + some.length
    }
    return repaired
  }

  /** Ends the process; waiting letters are neither repaired nor refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#endRunner()
    await Promise.all(this.#leaving)
  }

  #inTurn(recipe: Recipe, letters: readonly LetterContent[], terms: RepairTerms): Promise<RunEnd> {
    clearTimeout(this.#idle)
    this.#waiting++
    const done = this.#turn.then(() => this.#run(recipe, letters, terms))
    this.#turn = done.then(
      () => this.#rest(),
      () => this.#rest(),
    )
    return done
  }

  async #run(recipe: Recipe, letters: readonly LetterContent[], terms: RepairTerms): Promise<RunEnd> {
    if (this.#isClosed) throw failure('service_stopping')
    const runner = this.#readyRunner()
    await runner.ready
    const end = await runner.run(recipe, letters, terms)
    if (end.broke !== null)
      this.#log.warn(
        { reason: end.broke, recipe: recipe.version },
        'a repair was ended, and its process with it',
      )
    return end
  }

  #readyRunner(): RepairRunner {
    if (this.#runner?.isGone) this.#endRunner()
    this.#runner ??= new RepairRunner()
    return this.#runner
  }

  #rest(): void {
    this.#waiting--
    if (this.#waiting === 0 && !this.#isClosed)
      this.#idle = setTimeout(() => this.#endRunner(), IDLE_MS).unref()
  }

  #endRunner(): void {
    clearTimeout(this.#idle)
    if (this.#runner === null) return
    const leaving = this.#runner.end().finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
    this.#runner = null
  }
}

/** Letters that go to the process together; at least one. */
function portion(
  recipe: Recipe,
  letters: readonly Repairable[],
  from: number,
  most: number,
): readonly LetterContent[] {
  const needsPayload = recipe.patch !== null || recipe.mapping !== null
  const some: LetterContent[] = []
  let bytes = 0
  for (const letter of letters.slice(from, from + most)) {
    if (whyNot(recipe, letter) !== null) break
    const { encoding, kind, reference } = letter
    const payload = needsPayload ? letter.payload : NO_BYTES
    bytes += payload.length
    if (some.length > 0 && bytes > BYTES_AT_ONCE) break
    some.push({ encoding, kind, reference, payload })
  }
  return some
}

/** Why a recipe cannot repair a letter, whatever its payload. */
function whyNot(recipe: Recipe, letter: Repairable | undefined): string | null {
  if (letter === undefined) return null
  const { source } = letter
  const { unrepairable } = kindOf(source)
  if (unrepairable !== undefined) return unrepairable
  if (recipe.headers === null || goesToQueues(source)) return null
  return `letters of ${source} have no headers that a repair could change`
}
