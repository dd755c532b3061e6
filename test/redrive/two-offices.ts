/**
 * Two offices on one store, each with a clock of its own. An office whose clock stands still while the other's goes on is a server
 * that was lost: its leases end, the other takes up what it was at, and when it is found again it has missed all of that.
 */
import { TestClock } from '../../src/core/test-clock.ts'
import { Office } from '../../src/office.ts'
import type { RedriveStanding } from '../../src/redrive/redrive.ts'
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { START } from '../world/redrive-office.ts'
import type { FreshStore, StoreKind } from '../world/stores.ts'

interface Seat {
  office: Office
  clock: TestClock
  isLost: boolean
}

export class TwoOffices {
  readonly #place: FreshStore
  /** For looks at the tables. */
  readonly db: Database
  readonly #seats: Seat[]
  #now: bigint = START

  private constructor(place: FreshStore, seats: Seat[]) {
    this.#place = place
    this.#seats = seats
    this.db = openDatabase(place.url, { poolSize: 1 })
  }

  static async open(kind: StoreKind): Promise<TwoOffices> {
    const place = await kind.fresh()
    const seats = [await seatAt(place, START), await seatAt(place, START)]
    return new TwoOffices(place, seats)
  }

  async close(): Promise<void> {
    for (const { office } of this.#seats) await office.close()
    await this.db.close()
    await this.#place.dispose()
  }

  /** One that is there: the `n`th, or the other. */
  at(n: number): Office {
    const seat = this.#seats[n % 2]
    const there = seat?.isLost === false ? seat : this.#seats.find(({ isLost }) => !isLost)
    if (there === undefined) throw new Error('both offices are lost')
    return there.office
  }

  /** Time goes by for those that are there; what is due then is done. */
  async advance(us: bigint): Promise<void> {
    this.#now += us
    await this.#catchUp()
  }

  async #catchUp(): Promise<void> {
    for (const seat of this.#seats) {
      const us = this.#now - seat.clock.now()
      if (!seat.isLost && us > 0n) await seat.office.advanceClock(us)
    }
    await this.settle()
  }

  /** Whoever has something to do does it. */
  async settle(): Promise<void> {
    for (const { office, isLost } of this.#seats) {
      if (isLost) continue
      await office.queues.settle()
      await office.redrives.settle()
    }
  }

  /** An office is lost, unless the other is. */
  lose(n: number): void {
    const seat = this.#seats[n % 2]
    if (seat !== undefined && this.#seats.every(({ isLost }) => !isLost)) seat.isLost = true
  }

  /** Whoever is lost is found again, and sees how late it is. */
  async find(): Promise<void> {
    for (const seat of this.#seats) seat.isLost = false
    await this.#catchUp()
  }

  /** An office closes, and another opens. */
  async replace(n: number): Promise<void> {
    const seat = this.#seats[n % 2]
    if (seat === undefined) return
    await seat.office.close()
    Object.assign(seat, await seatAt(this.#place, this.#now))
  }

  async redrives(): Promise<readonly RedriveStanding[]> {
    return this.at(0).redrives.list({ limit: 1_000, before: null, states: null })
  }
}

async function seatAt({ url }: FreshStore, now: bigint): Promise<Seat> {
  const clock = new TestClock()
  clock.freeze(START)
  if (now > START) clock.advance(now - START)
  return { clock, office: await Office.open({ store: url, clock }), isLost: false }
}
