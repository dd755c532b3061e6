import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { OUTBOX_NAME, OutboxOffice, PLACES } from '../../../../test/world/outbox-office.ts'
import { violationsIn } from '../../../../test/world/verified.ts'
import { later } from '../../../core/clock.ts'

const HOUR = 3_600_000_000n

describe.each(PLACES)('failures before a message of an outbox $name died', (place) => {
  let office: OutboxOffice
  beforeAll(async () => {
    office = await OutboxOffice.open(place, { maxRetries: 2 })
  })
  afterAll(async () => {
    expect(await violationsIn(office.store.db, { clock: office.store.clock })).toEqual([])
    await office.close()
  })
  beforeEach(() => office.begin())

  /** Delivers once an hour, and each time something else is wrong. */
  async function failWith(...errors: readonly Error[]) {
    for (const error of errors) {
      office.store.clock.advance(HOUR)
      await office.die(error)
    }
  }
  const [one, two, three] = [new RangeError('one'), new TypeError('two'), new Error('three')]

  it('stand in the case file of its letter, and the first is its first failure', async () => {
    const id = await office.table.insert()
    await failWith(one, two, three)
    const { letter, failures } = await office.letter()
    const diedAt = office.store.clock.now()
    expect(letter).toMatchObject({
      errorMessage: 'three',
      dequeueCount: 3,
      firstFailureAt: later(diedAt, -2n * HOUR),
      lastFailureAt: diedAt,
    })
    expect(
      failures.map(({ number, errorClass, errorMessage, failedBy, failedAt }) => [
        number,
        errorClass,
        errorMessage,
        failedBy,
        diedAt - failedAt,
      ]),
    ).toEqual([
      [1, 'RangeError', 'one', OUTBOX_NAME, 2n * HOUR],
      [2, 'TypeError', 'two', OUTBOX_NAME, HOUR],
      [3, 'Error', 'three', OUTBOX_NAME, 0n],
    ])
    expect(await office.table.row(id)).toMatchObject({ retry_count: 3, error: 'Error: three' })
  })

  it('stand behind those of its first life when it was sent back and died again', async () => {
    await office.table.insert()
    await failWith(one, two, three)
    await office.retry()
    await failWith(two, one, three)
    const { letter, failures } = await office.letter()
    expect(letter).toMatchObject({ dequeueCount: 6, firstFailureAt: later(letter.lastFailureAt, -5n * HOUR) })
    expect(failures.map(({ number, errorMessage }) => `${number} ${errorMessage}`)).toEqual([
      '1 one',
      '2 two',
      '3 three',
      '4 two',
      '5 one',
      '6 three',
    ])
  })

  it('are forgotten when it arrives after all', async () => {
    const id = await office.table.insert()
    await failWith(one)
    expect((await office.table.row(id)).earlier_failures).not.toBeNull()
    office.store.clock.advance(HOUR)
    await office.dispatch()
    expect(await office.table.row(id)).toMatchObject({ earlier_failures: null, error: null })
    expect(await office.list()).toEqual([])
  })
})

describe.each(PLACES.slice(0, 2))('many failures of a message of an outbox $name', (place) => {
  it('are kept as far as there is room: the first and the last of them', async () => {
    const office = await OutboxOffice.open(place, { maxRetries: 30 })
    await office.table.insert()
    for (let n = 1; n <= 31; n++) {
      office.store.clock.advance(HOUR)
      await office.die(new Error(`no ${n}`))
    }
    const { letter, failures } = await office.letter()
    expect(letter).toMatchObject({
      dequeueCount: 31,
      firstFailureAt: later(letter.lastFailureAt, -30n * HOUR),
    })
    const kept = ['no 1', ...Array.from({ length: 20 }, (_, at) => `no ${at + 12}`)]
    expect(failures.map(({ errorMessage }) => errorMessage)).toEqual(kept)
    await office.close()
  })

  it('are not kept by a table without the column, which works as before', async () => {
    const office = await OutboxOffice.open(place, { maxRetries: 1 }, async (table) => {
      await table.query('ALTER TABLE outbox_messages DROP COLUMN earlier_failures')
    })
    await office.table.insert()
    await office.die(new Error('one'))
    office.store.clock.advance(HOUR)
    await office.die(new Error('two'))
    const { letter, failures } = await office.letter()
    expect(letter.firstFailureAt).toBe(letter.lastFailureAt)
    expect(failures.map(({ errorMessage }) => errorMessage)).toEqual(['two'])
    await office.close()
  })
})
