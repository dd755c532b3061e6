/** Letters that a redrive sent, that died again, and that somebody ended since: one answer, whatever the door they left by. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.ts'
import { RedriveOffice } from '../world/redrive-office.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

const QUEUE = 'orders'
const DEAD = `${QUEUE}-dead`
const DAY_US = 86_400_000_000n

describe.each(stores)('a letter that died again after a redrive, on $name', (kind) => {
  let at: RedriveOffice
  beforeEach(async () => {
    at = await RedriveOffice.open(kind)
    await at.createQueue(QUEUE)
  })
  afterEach(() => at?.close())

  const only = async () => {
    const [letter] = (await at.office.letters.list({})).items
    if (letter === undefined) throw new Error('there is no letter')
    return letter
  }
  const leased = () =>
    at.office.queues.lease({ queueName: DEAD, clientId: 'clerk', batchSize: 1, requestTimeout: '1s' })

  it.each([
    {
      door: 'discarded by an operator',
      end: async () =>
        void (await at.office.letters.change(await only(), {
          status: 'Resolved',
          notes: null,
          actor: 'nell',
        })),
    },
    {
      door: 'expired by an operator',
      end: async () =>
        void (await at.office.letters.change(await only(), {
          status: 'Expired',
          notes: null,
          actor: 'nell',
        })),
    },
    {
      door: 'expired with all that are old',
      async end() {
        at.clock.advance(2n * DAY_US)
        await at.office.letters.expireOlder({ olderThanDays: 1, engine: null, actor: 'nell' })
      },
    },
    {
      door: 'completed in its dead queue',
      async end() {
        const { partition, items } = await leased()
        await at.office.queues.complete({ queueName: DEAD, partition, ids: items.map(({ id }) => id) })
      },
    },
    {
      door: 'rejected in its dead queue',
      async end() {
        const { partition, items } = await leased()
        const dead = items.map(({ id }) => ({ id, dead: true }))
        await at.office.queues.retry({ queueName: DEAD, partition, items: dead })
      },
    },
    {
      door: 'cleared out of its dead queue',
      end: () => at.office.queues.clear({ queueName: DEAD, queue: true, destructive: true }),
    },
  ])('is superseded for it, and says nothing of its retry, once it is $door', async ({ end }) => {
    await at.dead(QUEUE, ['one'])
    const { id } = await at.run()
    await at.work(QUEUE, () => false)
    const outcomes = async () =>
      (await at.office.redrives.members(id, { limit: 10, token: null, outcome: null })).items.map(
        ({ outcome }) => outcome,
      )
    expect(await outcomes()).toEqual(['returned'])
    await end()
    expect(await outcomes()).toEqual(['superseded'])
    const { letter } = await at.office.letters.get(await only())
    expect(letter.status).not.toBe('Pending')
    expect(letter).toMatchObject({
      sentAs: null,
      sentTo: null,
      redrive: null,
      confirmedAt: null,
      position: null,
    })
    const db = openDatabase(at.place.url, { poolSize: 1 })
    expect(await violationsIn(db, { clock: at.clock }).finally(() => db.close())).toEqual([])
  })
})
