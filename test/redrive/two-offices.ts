/**
 * Two offices on one store, each with a clock of its own. An office whose clock stands still while the other's goes on is a server
 * that was lost: its leases end, the other takes up what it was at, and when it is found again it has missed all of that.
 */
import { TestClock } from '../../src/core/test-clock.ts'
import { STATUS } from '../../src/letters/letter.ts'
import { Office } from '../../src/office.ts'
import type { RedriveStanding } from '../../src/redrive/redrive.ts'
import { type Database, type Integer, sql } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { START } from '../world/redrive-office.ts'
import type { FreshStore, StoreKind } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

interface Seat {
  office: Office
  clock: TestClock
  isLost: boolean
}

/** What history has of letters that were sent back. */
const readSends = sql(
  'test.redriveSends',
  `SELECT record.letter_id, record.letter_version, record.output, letter.engine, letter.instance_id, letter.captured_at
   FROM bartleby.history AS record JOIN bartleby.history_series AS series ON series.id = record.series
   JOIN bartleby.letters AS letter ON letter.id = record.letter_id
   WHERE series.operation = 'retry' ORDER BY record.letter_id, record.letter_version`,
  { bigints: true },
)

/** Letters of keys that wait. */
const readPending = sql(
  'test.pendingOfKeys',
  `SELECT id, version, engine, instance_id, captured_at FROM bartleby.letters
   WHERE status = ${STATUS.Pending} AND instance_id IS NOT NULL AND engine <> 'queues'`,
  { bigints: true },
)

/** Letters with more than one item. */
const readShared = sql(
  'test.sharedCases',
  'SELECT case_id FROM bartleby.items WHERE case_id IS NOT NULL GROUP BY case_id HAVING count(*) > 1',
)

/** A letter that went out. */
export interface Send {
  readonly letter: string
  readonly version: number
  /** null: it was sent by hand. */
  readonly redrive: string | null
  readonly key: string | null
  readonly capturedAt: bigint
  /** The item's id ends with its place in the order in which all items of the store were put into queues. */
  readonly serial: string
}

/** A letter of a key that waits. */
export interface Waiting {
  readonly letter: string
  readonly version: number
  readonly key: string
  readonly capturedAt: bigint
}

export class TwoOffices {
  readonly #place: FreshStore
  readonly #db: Database
  readonly #seats: Seat[]
  #now: bigint = START

  private constructor(place: FreshStore, seats: Seat[]) {
    this.#place = place
    this.#seats = seats
    this.#db = openDatabase(place.url, { poolSize: 1 })
  }

  static async open(kind: StoreKind): Promise<TwoOffices> {
    const place = await kind.fresh()
    const seats = [await seatAt(place, START), await seatAt(place, START)]
    return new TwoOffices(place, seats)
  }

  async close(): Promise<void> {
    for (const { office } of this.#seats) await office.close()
    await this.#db.close()
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

  /** What `bartleby verify` finds wrong. */
  violations(): Promise<readonly unknown[]> {
    return violationsIn(this.#db)
  }

  /** Letters that have two items. */
  async doubled(): Promise<string[]> {
    const rows = await this.#db.session('test', (session) => session.rows<{ case_id: Integer }>(readShared))
    return rows.map(({ case_id }) => String(case_id))
  }

  /** Letters of keys that are pending now. */
  async waiting(): Promise<Waiting[]> {
    const rows = await this.#db.session('test', (session) => session.rows<WaitingRow>(readPending))
    return rows.map(({ id, version, engine, instance_id, captured_at }) => ({
      letter: String(id),
      version: Number(version),
      key: `${engine} ${instance_id}`,
      capturedAt: BigInt(captured_at),
    }))
  }

  /** Everything that went out. */
  async sends(): Promise<Send[]> {
    const rows = await this.#db.session('test', (session) => session.rows<SendRow>(readSends))
    return rows.map((row) => {
      const output = JSON.parse(Buffer.from(row.output).toString()) as { messageId: string; redrive?: string }
      return {
        letter: String(row.letter_id),
        version: Number(row.letter_version),
        redrive: output.redrive ?? null,
        key: row.instance_id === null ? null : `${row.engine} ${row.instance_id}`,
        capturedAt: BigInt(row.captured_at),
        serial: output.messageId.slice(-9),
      }
    })
  }
}

interface WaitingRow {
  readonly id: Integer
  readonly version: Integer
  readonly engine: string
  readonly instance_id: string
  readonly captured_at: Integer
}

interface SendRow {
  readonly letter_id: Integer
  readonly letter_version: Integer
  readonly output: Uint8Array
  readonly engine: string
  readonly instance_id: string | null
  readonly captured_at: Integer
}

async function seatAt({ url }: FreshStore, now: bigint): Promise<Seat> {
  const clock = new TestClock()
  clock.freeze(START)
  if (now > START) clock.advance(now - START)
  return { clock, office: await Office.open({ store: url, clock }), isLost: false }
}
