/**
 * A server that dies at any step of what it does, before or behind any statement or commit: another one takes over what it left. What
 * was accepted is there, every job comes to its end, and no count is off by one.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Xid, xid } from '../../src/core/xid.ts'
import { Refused } from '../../src/sources/webhooks/refusal.ts'
import { type Channel, JOB } from '../../src/sources/webhooks/webhook.ts'
import type { Database } from '../../src/store/database.ts'
import { Crash, type Intercept, intercepted } from '../world/intercepted-database.ts'
import { Receiver } from '../world/receiver.ts'
import { stores } from '../world/stores.ts'
import { CountedOffice, expectExact } from '../world/webhooks/office.ts'
import { type JobRow, jobsIn } from '../world/webhooks/rows.ts'

const SECOND = 1_000_000n
const WEBHOOKS = {
  delivery: {
    maxRetry: 1,
    backoffSeconds: [1],
    rationalDelaySeconds: 1,
    timeoutSeconds: 2,
    breaker: { failures: 0 },
  },
}
/** What a message goes through at the server that dies. */
const STORY: ReadonlySet<string> = new Set(['webhooks.broadcast', 'webhooks.claim', 'webhooks.settle'])
/** More than there are. */
const MOST_STEPS = 100

/** Dies at a step of the story, counted from 1, and never comes back. */
class Death {
  at: string | null = null
  #left: number

  constructor(step: number) {
    this.#left = step
  }

  readonly intercept: Intercept = ({ verb, next }) => {
    if (this.at === null && STORY.has(verb) && --this.#left === 0) this.at = `${next} of ${verb}`
    if (this.at !== null) throw new Crash(`before ${this.at}`)
  }
}

describe.each(stores)('a server on $name that dies at any step', (kind) => {
  let books: CountedOffice
  let receiver: Receiver
  const stopping: Promise<void>[] = []

  beforeAll(async () => {
    books = await CountedOffice.open(kind, { webhooks: WEBHOOKS })
    receiver = await Receiver.start()
    receiver.answer('/good', { status: 204 })
    receiver.answer('/bad', { status: 500 })
  })

  afterAll(async () => {
    await Promise.all(stopping)
    await receiver.close()
    await books.close()
  })

  const jobsOf = async ({ channelId }: Channel) =>
    (await jobsIn(books.db))
      .filter((job) => job.channelId === channelId)
      .toSorted((a, b) => a.consumerId.localeCompare(b.consumerId))

  async function channelOf(name: string): Promise<Channel> {
    const channel = await books.channel(name)
    for (const consumerId of ['bad', 'good']) {
      const callbackUrl = `${receiver.url}/${consumerId}`
      const request = { name: null, token: 'ktok', callbackUrl, type: 'push' }
      await books.office.webhooks.consumers.put(channel, consumerId, request, null)
    }
    return channel
  }

  /** Sends a message to its channel and delivers it, as far as it comes; tells whether it was accepted. */
  async function live(db: Database, channel: Channel, death: Death): Promise<boolean> {
    const mortal = books.webhooksOn(db)
    mortal.courier.start()
    const accepted = await mortal.broadcasts.accept(senderOf(channel), draftOf(channel)).then(
      () => true,
      (error: unknown) => {
        if (error instanceof Crash) return false
        throw error
      },
    )
    const isOver = async () => {
      if (death.at !== null) return true
      const states = (await jobsOf(channel)).map(({ state }) => state)
      // The failed one waits for its retry.
      return states.includes(JOB.later) && states.includes(JOB.delivered)
    }
    await expect.poll(isOver, { interval: 2 }).toBe(true)
    // What it holds it tries to write for a while, in vain.
    stopping.push(mortal.courier.stop(0))
    return accepted
  }

  /** Time passes until all jobs have come to their end. */
  async function outlive(channel: Channel): Promise<readonly JobRow[]> {
    for (let seconds = 0; seconds < 60; seconds++) {
      const jobs = await jobsOf(channel)
      if (jobs.every(({ state }) => state === JOB.delivered || state === JOB.dead)) return jobs
      await books.pass(SECOND)
      await new Promise((resolve) => setTimeout(resolve, 4))
      await expect.poll(() => books.office.webhooks.courier.held, { interval: 2 }).toBe(0)
    }
    return expect.fail(`jobs are stuck: ${JSON.stringify(await jobsOf(channel))}`)
  }

  it('leaves nothing that another one does not bring to its end', async () => {
    const places: string[] = []
    for (let step = 1; step <= MOST_STEPS; step++) {
      const death = new Death(step)
      const channel = await channelOf(`step-${step}`)
      const accepted = await live(intercepted(books.db, death.intercept), channel, death)
      const where = `death at ${step}: ${death.at}`
      const isThere = (await jobsOf(channel)).length > 0
      // Whoever was told so can rely on it; who was not asks again, and is told if it was there.
      if (accepted) expect(isThere, where).toBe(true)
      else {
        const again = books.office.webhooks.broadcasts.accept(senderOf(channel), draftOf(channel))
        if (isThere) await expect(again, where).rejects.toThrow(new Refused('message_duplicate'))
        else await again
      }
      const jobs = await outlive(channel)
      expect(jobs, where).toMatchObject([
        { consumerId: 'bad', state: JOB.dead, claim: null },
        { consumerId: 'good', state: JOB.delivered, claim: null },
      ])
      const calls = (consumer: string) => receiver.at(`/${consumer}`, channel.channelId).length
      // Once more than without a death, at most; a claim that lapses before the call is a retry too.
      expect([1, 2], where).toContain(calls('good'))
      expect([1, 2, 3], where).toContain(calls('bad'))
      const sheet = (await expectExact(books.db)).find(
        ({ channelId, consumerId }) => channelId === channel.channelId && consumerId === 'bad',
      )
      expect(sheet, where).toMatchObject({ jobs: 1, letters: 1, counted: 1 })
      if (death.at === null) break
      places.push(death.at)
    }
    for (const verb of STORY) {
      expect(places).toContain(`commit of ${verb}`)
      expect(places).toContain(`committed of ${verb}`)
    }
    expect(places.length).toBeGreaterThan(15)
    expect(places.length).toBeLessThan(MOST_STEPS)
    await books.expectVerified()
  })
})

/** Any producer will do: nobody is asked who sent it. */
const senderOf = ({
  number,
  channelId,
  id,
}: Channel): { channel: number; channelId: string; producer: Xid } => ({
  channel: number,
  channelId,
  producer: xid(id),
})

const draftOf = ({ channelId }: Channel) => ({
  messageId: channelId,
  content: { payload: Buffer.from(channelId), contentType: 'text/plain', priority: 0, headers: [] },
  scheduledFor: null,
})
