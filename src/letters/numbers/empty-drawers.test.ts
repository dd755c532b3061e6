import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { captureNew } from '../../../test/world/capture.ts'
import { sizeOf } from '../../../test/world/limits.ts'
import { reportOf } from '../../../test/world/report.ts'
import { type FreshStore, freshPostgres, freshSqlite, stores } from '../../../test/world/stores.ts'
import { instant } from '../../core/clock.ts'
import { TestClock } from '../../core/test-clock.ts'
import { MIGRATIONS } from '../../migrations.ts'
import {
  type Database,
  type Integer,
  type Statement,
  sql,
  type Transaction,
  type Value,
} from '../../store/database.ts'
import { foldCounts } from '../../store/fold.ts'
import { migrate } from '../../store/migrations.ts'
import { openDatabase } from '../../store/open.ts'
import { verifyStore } from '../../verify/verify.ts'
import { bury, PLAIN_RECORD } from '../bury.ts'
import { takingGiven } from '../capture.ts'
import { eraseLetters } from '../erase.ts'
import type { LetterId } from '../letter.ts'
import { newRegisters } from '../registers.ts'
import { inOffice } from '../work.ts'
import { forgetActivity } from './activity.ts'
import { letterCounter } from './counts.ts'
import { MOST_NUMBERS, removeEmptyDrawers, type Stretch, stretchOf } from './empty-drawers.ts'
import { readDrawers } from './find-drawers.ts'
import { LetterNumbers } from './letter-numbers.ts'
import { readPlaceCounts } from './summary.ts'

const DAY = 86_400_000_000n
const ROUNDS = sizeOf(25, 300)
const MAX_SIGNATURES = 20_000
const DEATHS = sizeOf(50, 1_000)

const strays = sql(
  'test.strays',
  `SELECT (SELECT count(*) FROM bartleby.letters WHERE drawer NOT IN (SELECT id FROM bartleby.drawers))
        + (SELECT count(*) FROM bartleby.letter_totals WHERE drawer NOT IN (SELECT id FROM bartleby.drawers)) AS found`,
)
const fillSignatures = sql(
  'test.fillSignatures',
  `INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at)
   WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${MAX_SIGNATURES} - $1::int)
   SELECT '9-' || n, 'E', 't', 0 FROM numbers`,
)
const fillPlace = sql(
  'test.fillPlace',
  `INSERT INTO bartleby.places (source, engine, queue) VALUES ('http', 'full', '')`,
)
const drawerOf = (id: string) =>
  `INSERT INTO bartleby.drawers (id, source, engine, queue, signature, place) ${id}
   VALUES ($1, 'http', 'full', $2, (SELECT max(id) FROM bartleby.signatures), (SELECT max(id) FROM bartleby.places))`
const fillDrawer = sql('test.fillDrawer', {
  postgres: drawerOf('OVERRIDING SYSTEM VALUE'),
  sqlite: drawerOf(''),
})
const fillDrawers = sql(
  'test.fillDrawers',
  `INSERT INTO bartleby.drawers (source, engine, queue, signature, place)
   SELECT 'http', 'full', '', id, (SELECT max(id) FROM bartleby.places) FROM bartleby.signatures WHERE fingerprint LIKE '9-%'`,
)

/** Deaths with an error each that differs in words. */
const differentDeaths = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    cause: {
      source: 'http' as const,
      reason: 'failed' as const,
      ...{
        engine: 'http',
        queue: null,
        errorClass: 'E',
        errorStack: null,
        failedBy: null,
        record: PLAIN_RECORD,
      },
      errorMessage: `no ${[...String(i)].map((digit) => 'abcdefghij'[Number(digit)]).join('')} left`,
    },
    ...{ caseId: null, sourceId: `dead-${i}`, diedAs: null, attempts: 1, position: null },
    item: {
      ...{ itemCreatedAt: null, dequeueCount: 1, partition: null, encoding: null, kind: null },
      ...{ reference: null, headers: null, payload: null },
    },
  }))

/** The transaction, with `told` called for each statement that gives rows. */
const listenedTo = (tx: Transaction, told: (statement: Statement) => void): Transaction =>
  new Proxy(tx, {
    get(_, name) {
      const value: unknown = Reflect.get(tx, name, tx)
      if (typeof value !== 'function') return value
      if (name !== 'rows') return value.bind(tx)
      return async (statement: Statement, ...values: readonly Value[]) => {
        told(statement)
        return tx.rows(statement, ...values)
      }
    },
  })

/** A server, with what it remembers of drawers. */
class Server {
  readonly db: Database
  readonly registers = newRegisters()
  readonly #clock: TestClock
  readonly #reports: () => number

  constructor(url: string, clock: TestClock, reports: () => number) {
    this.db = openDatabase(url, { poolSize: 4 })
    this.#clock = clock
    this.#reports = reports
  }

  capture(errorMessage: string): Promise<LetterId> {
    return inOffice(this.db, this.#clock, 'test', async (work) => {
      const report = reportOf(this.#reports(), this.#clock.now(), { engine: 'http', errorMessage })
      return captureNew(work, this.registers, report)
    })
  }

  erase(id: LetterId): Promise<void> {
    return inOffice(this.db, this.#clock, 'test', (work) =>
      eraseLetters(work, {
        engine: 'http',
        letters: [id],
        pendingSince: work.now,
        isRun: false,
        correlationId: `erasure-${id}`,
        instanceId: null,
        actor: 'tester',
        notes: '',
      }),
    )
  }

  /** As retention does it long after everything. */
  async removeDrawers(): Promise<void> {
    if (this.db.dialect === 'postgres')
      await foldCounts(this.db, letterCounter, { clock: this.#clock, owner: 'tester' })
    const muchLater = instant(this.#clock.now() + 100n * DAY)
    await this.db.transaction('test', (tx) => forgetActivity(tx, muchLater, 31, 100_000))
    await this.db.transaction('test', async (tx) => {
      let stretch: Stretch | null = await stretchOf(tx, muchLater)
      while (stretch !== null) stretch = await removeEmptyDrawers(tx, stretch, 5_000)
    })
  }
}

describe.each(stores)('drawers without letters on $name', (kind) => {
  const clock = new TestClock()
  let place: FreshStore
  let one: Server
  let other: Server
  beforeEach(async () => {
    clock.freeze(instant(1_800_000_000_000_000n))
    place = await (kind.name === 'sqlite' ? freshSqlite() : freshPostgres())
    let reports = 0
    one = new Server(place.url, clock, () => ++reports)
    other = new Server(place.url, clock, () => ++reports)
    await migrate(one.db, MIGRATIONS)
  })
  afterEach(async () => {
    await one?.db.close()
    await other?.db.close()
    await place?.dispose()
  })

  const drawers = () => one.db.session('test', (session) => readDrawers(session))
  const broken = async () => {
    const { invariants } = await verifyStore(one.db, { clock })
    return invariants.filter((each) => each.broken > 0).map(({ violations }) => violations)
  }

  it('go when nothing is told of them any more; their place keeps what was counted, and their signature is known', async () => {
    const id = await one.capture('too slow')
    await one.capture('still here')
    const [gone] = await drawers()
    await one.removeDrawers()
    expect(await drawers()).toHaveLength(2)
    await one.erase(id)
    await one.removeDrawers()
    expect((await drawers()).map(({ number }) => number)).not.toContain(gone?.number)
    const [account] = await one.db.session('test', (session) => readPlaceCounts(session))
    expect(account).toMatchObject({ letters: { Pending: 1 }, removed: 1, ever: { arrived: 2 } })
    const numbers = new LetterNumbers(one.db, clock, { checkKnown: async () => {} })
    expect(await numbers.signature(gone?.fingerprint ?? '')).toMatchObject({ title: 'too slow', total: 0 })
    expect(await broken()).toEqual([])
  })

  it('are looked at in turns where they are many, also with one round a day, so that a round costs no more', async () => {
    await one.db.transaction('test', async (tx) => {
      await tx.run(fillPlace)
      await tx.run(fillSignatures, MAX_SIGNATURES - 1)
      for (const number of [1, MOST_NUMBERS + 1, 2 * MOST_NUMBERS, 2 * MOST_NUMBERS + 1])
        await tx.run(fillDrawer, number, `queue-${number}`)
    })
    const left: (readonly number[])[] = []
    for (let round = 0; round < 12; round++) {
      await one.removeDrawers()
      left.push((await drawers()).map(({ number }) => number))
      clock.advance(DAY)
    }
    expect(left[0]?.length).toBeGreaterThan(1)
    expect(left.at(-1)).toEqual([2 * MOST_NUMBERS + 1])
  })

  it('are made anew by a server that remembers them, under another number', async () => {
    const id = await one.capture('too slow')
    await other.capture('the newest')
    const [before] = await drawers()
    await other.erase(id)
    await other.removeDrawers()
    await one.capture('too slow')
    const again = (await drawers()).find(({ fingerprint }) => fingerprint === before?.fingerprint)
    expect(again?.number).toBeGreaterThan(before?.number ?? 0)
    expect(await broken()).toEqual([])
  })

  it('leave nothing behind that points to them, while two servers capture, erase and remove', async () => {
    const held: LetterId[] = []
    for (let round = 0; round < ROUNDS; round++) {
      clock.advance(1_000_000n)
      const errors = ['a', 'b', 'c', 'd'].map((word) => `it is ${word}`)
      const captured = await Promise.all([
        ...errors.map((error) => one.capture(error)),
        ...errors.slice(round % 3).map((error) => other.capture(error)),
        one.removeDrawers().then(() => null),
        other.removeDrawers().then(() => null),
      ])
      held.push(...captured.flatMap((id) => id ?? []))
      const erased = held.splice(0, round % 4 === 3 ? held.length : 3)
      await Promise.all([
        ...erased.map((id, i) => (i % 2 === 0 ? one : other).erase(id)),
        other.removeDrawers(),
      ])
      const [row] = await one.db.session('test', (session) => session.rows<{ found: Integer }>(strays))
      expect(Number(row?.found), `round ${round}`).toBe(0)
    }
    expect(await broken()).toEqual([])
  })

  const fingerprints = async () => (await drawers()).map(({ fingerprint }) => fingerprint)
  /** Fills the office with drawers of as many signatures as are told apart, but for some. */
  const fill = (butFor: number) =>
    one.db.transaction('test', async (tx) => {
      await tx.run(fillSignatures, butFor)
      await tx.run(fillPlace)
      await tx.run(fillDrawers)
    })

  it('no longer count for how many signatures are told apart', async () => {
    await fill(0)
    await one.capture('one too many')
    expect(await fingerprints()).toContain('0-overflow')
    await one.removeDrawers()
    clock.advance(61_000_000n)
    await one.capture('another one')
    expect((await fingerprints()).filter((each) => each.startsWith('1-'))).toHaveLength(1)
  })

  it('have signatures that need room like new ones when they return', async () => {
    const id = await one.capture('too slow')
    await one.capture('the newest')
    const [gone] = await drawers()
    await one.erase(id)
    await one.removeDrawers()
    await fill(1)
    await other.capture('too slow')
    expect(await fingerprints()).not.toContain(gone?.fingerprint)
    expect(await fingerprints()).toContain('0-overflow')
    await other.capture('the newest')
    expect((await fingerprints()).filter((each) => each.startsWith('1-'))).toHaveLength(1)
    await one.removeDrawers()
    clock.advance(61_000_000n)
    await one.capture('too slow')
    expect(await fingerprints()).toContain(gone?.fingerprint)
  })

  it('and others are counted once for all new signatures of a transaction, which get the room that is left', async () => {
    await fill(20)
    let counts = 0
    const captured = await inOffice(one.db, clock, 'test', async (work) => {
      const tx = listenedTo(work.tx, ({ name }) => (counts += Number(name === 'signatures.inUse')))
      return (await bury({ ...work, tx }, one.registers, takingGiven(), differentDeaths(DEATHS))).captured
    })
    expect([captured, counts]).toEqual([DEATHS, 1])
    expect((await fingerprints()).filter((each) => each.startsWith('1-'))).toHaveLength(20)
  })

  it('are counted again after a count that failed', async () => {
    await fill(1)
    const failing = inOffice(one.db, clock, 'test', (work) => {
      const tx = listenedTo(work.tx, ({ name }) => {
        if (name === 'signatures.inUse') throw new Error('no count')
      })
      return bury({ ...work, tx }, one.registers, takingGiven(), differentDeaths(2))
    })
    await expect(failing).rejects.toThrow('no count')
    await one.capture('one more')
    await one.capture('one too many')
    expect((await fingerprints()).filter((each) => each.startsWith('1-'))).toHaveLength(1)
  })
})
