/** Something that is done every so often by an injected clock, once at a time, until it is stopped. */
import { type Alarm, type Clock, later } from '../../core/clock.ts'

export class Rounds {
  readonly #clock: Clock
  readonly #everyUs: bigint
  readonly #act: () => Promise<void>
  #alarm: Alarm | null = null
  #acting: Promise<void> | null = null
  #again = false
  #stopped = false

  /** `act` must not reject. */
  constructor(clock: Clock, everyUs: bigint, act: () => Promise<void>) {
    this.#clock = clock
    this.#everyUs = everyUs
    this.#act = act
  }

  /** Does it now, and from then on; once more when it is being done already. */
  now(): void {
    if (this.#stopped) return
    if (this.#acting !== null) {
      this.#again = true
      return
    }
    this.#alarm?.cancel()
    this.#acting = this.#act().finally(() => {
      this.#acting = null
      if (this.#stopped) return
      const again = this.#again
      this.#again = false
      if (again) this.now()
      else this.#alarm = this.#clock.alarm(later(this.#clock.now(), this.#everyUs), () => this.now())
    })
  }

  /** Resolves when it is not being done any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#alarm?.cancel()
    await this.#acting
  }
}
