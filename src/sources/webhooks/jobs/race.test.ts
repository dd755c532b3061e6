import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { BartlebyError } from '../../../core/errors.ts'
import type { Xid } from '../../../core/xid.ts'
import { Refused } from '../refusal.ts'
import type { Consumer } from '../webhook.ts'

const SMALL = { dlq: { batchSize: 3 } }
const ROUNDS = 3
const CALLERS = 6
const CALLS = 12

/** Numbers that look random and are the same every time. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * sides)
  }
}

describe.each(stores)('everybody at the same dead jobs on $name', (kind) => {
  let office: WebhookWorld
  beforeAll(async () => {
    office = await WebhookWorld.open(kind)
  })
  afterAll(() => office?.close())

  it('leaves every job in one state, with its letter, its counts and its history', async () => {
    const channel = await office.channel()
    const consumers = [
      await office.consumer(channel, { type: 'pull' }),
      await office.consumer(channel, { type: 'pull' }),
    ]
    const bulk = [office.bulk(SMALL), office.bulk(SMALL, office.another())]
    const roll = dice(1853)
    const one = <T>(of: readonly T[]): T => of[roll(of.length)] as T

    /** Something that somebody may do at any moment. */
    const act = async (consumer: Consumer, job: Xid): Promise<unknown> => {
      const { jobs, letters } = office
      const notes = { notes: 'for the test', actor: 'operator' }
      switch (roll(10)) {
        case 0:
          return one(bulk).requeueAll(consumer, 'tester')
        case 1:
          return one(bulk).purge(consumer, 'tester')
        case 2:
          return jobs.requeue(consumer, job)
        case 3:
          return jobs.erase(consumer, job)
        case 4:
          return letters.retry(await office.letter(job), { edit: null, ...notes })
        case 5:
          return letters.change(await office.letter(job), {
            status: one(['Resolved', 'Expired', 'Pending'] as const),
            ...notes,
          })
        default:
          return jobs.move(consumer, job, one(['INFLIGHT', 'INFLIGHT', 'DEAD', 'DELIVERED']), 0)
      }
    }

    for (let round = 0; round < ROUNDS; round++) {
      const sent = await office.send(consumers, 10)
      await office.die(sent.flat().slice(0, 12))
      await Promise.all(
        Array.from({ length: CALLERS }, async () => {
          for (let call = 0; call < CALLS; call++) {
            const place = roll(consumers.length)
            const [consumer, job] = [consumers[place], one(sent)[place]] as [Consumer, Xid]
            await act(consumer, job).catch(expectRefusal)
          }
        }),
      )
      await office.idle()
      for (const consumer of consumers) await office.deadCount(consumer)
      await office.expectVerified()
      office.pass(1)
    }
  })
})

/** Who comes too late is told so; nothing else may go wrong. */
function expectRefusal(error: unknown): void {
  if (error instanceof Refused || error instanceof BartlebyError) return
  expect(error).toMatchObject({ message: expect.stringContaining('has no letter') })
}
