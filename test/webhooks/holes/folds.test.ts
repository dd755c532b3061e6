/** Jobs that die while counts are folded, and those who read meanwhile. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { letterCounter } from '../../../src/letters/numbers/counts.ts'
import type { Channel, Consumer } from '../../../src/sources/webhooks/webhook.ts'
import { type Database, declaredStatements } from '../../../src/store/database.ts'
import { foldCounts } from '../../../src/store/fold.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { Gate, intercepted } from '../../world/intercepted-database.ts'
import { stores } from '../../world/stores.ts'
import { CountedOffice, expectExact, FOLDS } from '../../world/webhooks/office.ts'
import { gaugeIn } from '../../world/webhooks/told.ts'

/** Lets others run: on SQLite nothing of what is awaited here leaves the event loop. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe.each(stores)('dead jobs on $name', (store) => {
  let house: CountedOffice
  let names = 0
  const others: Database[] = []
  beforeAll(async () => {
    house = await CountedOffice.open(store)
  })
  afterAll(async () => {
    for (const db of others) await db.close()
    await house?.close()
  })

  /** The store as somebody else opens it. */
  const another = (): Database => {
    const db = openDatabase(house.place.url, { poolSize: 2 })
    others.push(db)
    return db
  }
  const receiver = async (office = house): Promise<readonly [Channel, Consumer]> => {
    const channel = await office.channel(`channel ${++names}`)
    return [channel, await office.consumer(channel, 'k')]
  }

  /** Jobs die, one after the other; some are requeued, some deleted. Gives how many are dead then. */
  const traffic = async (office: CountedOffice, jobs: number): Promise<number> => {
    const [channel, consumer] = await receiver(office)
    const { webhooks } = office.office
    let dead = 0
    for (let i = 0; i < jobs; i++) {
      const id = await office.dead(channel, consumer)
      await turn()
      if (i % 3 === 1) await webhooks.jobs.requeue(consumer, id)
      else if (i % 3 === 2) await webhooks.jobs.erase(consumer, id)
      else dead++
    }
    expect((await office.sheet(channel, consumer)).jobs).toBe(dead)
    return dead
  }

  /** Does `meanwhile` again and again as long as jobs die. Gives how often. */
  const duringTraffic = async (meanwhile: () => Promise<unknown>, office = house): Promise<number> => {
    let isOver = false
    const traffics = Promise.all([6, 6, 6].map((jobs) => traffic(office, jobs))).finally(() => {
      isOver = true
    })
    traffics.catch(() => {})
    let rounds = 0
    for (; !isOver; rounds++) {
      await meanwhile()
      await turn()
    }
    expect(await traffics).toEqual([2, 2, 2])
    await office.fold()
    await expectExact(office.db)
    return rounds
  }

  // H5
  it('are counted as soon as their death is committed, however long before the fold it began', async () => {
    const [channel, consumer] = await receiver()
    const job = await house.job(channel, consumer)
    const gate = new Gate(({ next }) => next === 'commit')
    const slow = house.webhooksOn(intercepted(another(), gate.intercept))
    const dying = slow.jobs.move(consumer, job, 'DEAD', 0)
    await gate.reached
    await house.pass(1_000_000n)
    await house.fold()
    expect((await house.sheet(channel, consumer)).counted).toBeNull()
    gate.open()
    await dying
    await house.expectDead(channel, consumer, 1)
  })

  // H7
  it('are neither lost nor doubled when they die while counts are folded', async () => {
    const foldAndLook = async () => {
      await Promise.all([house.fold(), expectExact(house.db)])
    }
    expect(await duringTraffic(foldAndLook)).toBeGreaterThan(1)
  })

  // H8
  it('are counted once, however many fold at the same time', async () => {
    const folders = [another(), another(), another()]
    const limits = { clock: house.clock, most: 2 }
    const foldAll = () =>
      Promise.all(
        folders.map(async (db, i) => {
          if (db.dialect === 'sqlite') return
          const owner = `folder ${i}`
          for (const fold of FOLDS)
            await foldCounts(db, { ...fold, lock: owner + fold.lock }, { ...limits, owner })
        }),
      )
    expect(await duringTraffic(foldAll)).toBeGreaterThan(1)
  })

  // H23
  it('are never told wrongly to who reads while counts are folded', async () => {
    const [channel, consumer] = await receiver()
    const queue = `${channel.channelId}/k`
    for (let i = 0; i < 10; i++) await house.dead(channel, consumer)
    const { status, metrics } = house.office.webhooks
    let isOver = false
    const told = new Set<number | undefined>()
    const read = async () => {
      for (; !isOver; await turn()) {
        const { consumers } = await status.dead()
        told.add(consumers.find(({ channelId }) => channelId === channel.channelId)?.deadCount)
        told.add(gaugeIn(await metrics.text())[queue])
      }
    }
    const readers = Promise.all([read(), read()])
    readers.catch(() => {})
    const folder = another()
    const limits = { clock: house.clock, owner: 'the test', most: 1 }
    if (folder.dialect === 'postgres') await foldCounts(folder, { ...letterCounter, lock: 'slow' }, limits)
    isOver = true
    await readers
    expect([...told]).toEqual([10])
  })

  // H15
  it('are counted from the first moment of a store on, whatever moves while counts are folded first', async () => {
    const fresh = await CountedOffice.open(store, { foldsByItself: true })
    try {
      const look = () => expectExact(fresh.db)
      await Promise.all([duringTraffic(look, fresh), fresh.another()])
      await fresh.expectVerified()
    } finally {
      await fresh.close()
    }
  })

  // H16
  it('are not counted one by one, however often nothing is there to count', async () => {
    const used = new Set<string>()
    const watched = intercepted(another(), ({ next }) => void used.add(next))
    const { status } = house.webhooksOn(watched)
    const before = await status.dead()
    await receiver()
    for (let tick = 0; tick < 5; tick++) {
      await house.fold(watched)
      expect(await status.dead()).toEqual(before)
    }
    const texts = declaredStatements()
      .filter(({ name }) => used.has(name))
      .map((statement) => statement[store.name])
    expect(texts).not.toEqual([])
    // Neither jobs nor letters are read at all: the names of all other tables have more behind these words.
    for (const text of texts) expect(text).not.toMatch(/(FROM|JOIN) (bartleby\.)?(webhook_jobs|letters)\b/)
  })
})
