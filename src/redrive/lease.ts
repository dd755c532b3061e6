/** Keeps a redrive for this server as long as it works on it, and notes how fast it goes. A server that does not come back loses it. */
import { type Alarm, type Clock, later } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Database } from '../db/database.ts'
import type { Redrive } from './redrive.ts'
import { renewRedrive } from './rows.ts'

/** A server that does not come back has lost a redrive after so long: with a look every second, another is at it within five. */
export const LEASE_US = 3_000_000n
const RENEW_US = 1_000_000n

export interface LeaseParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly owner: string
  /** Letters a second; null when that is not known yet. */
  readonly rate: () => number | null
  /** It is another server's by now, or nobody's. */
  readonly onLost: () => void
}

export class Lease {
  readonly #parts: LeaseParts
  readonly #redrive: Pick<Redrive, 'number' | 'id'>
  #alarm: Alarm | undefined

  constructor(parts: LeaseParts, redrive: Pick<Redrive, 'number' | 'id'>) {
    this.#parts = parts
    this.#redrive = redrive
  }

  /** Renews it from now on. */
  keep(): void {
    const { clock } = this.#parts
    this.#alarm = clock.alarm(later(clock.now(), RENEW_US), () => {
      this.keep()
      void this.#renew()
    })
  }

  /** Lets it run out. */
  drop(): void {
    this.#alarm?.cancel()
  }

  async #renew(): Promise<void> {
    const { db, clock, log, owner, rate, onLost } = this.#parts
    const { number, id } = this.#redrive
    try {
      const until = later(clock.now(), LEASE_US)
      const isOurs = await db.session('redrive.renew', (session) =>
        renewRedrive(session, number, { owner, until }, rate()),
      )
      if (!isOurs) onLost()
    } catch (error) {
      log.warn({ err: error, redrive: id }, 'the lease of a redrive was not renewed')
    }
  }
}
