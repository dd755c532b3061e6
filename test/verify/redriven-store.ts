/** A small store with a redrive that is done and one that is paused on its way, made by the office itself, and closed. */
import type { RedriveDetail } from '../../src/redrive/redrive.ts'
import { PLAIN, RedriveOffice } from '../world/redrive-office.ts'
import type { FreshStore, StoreKind } from '../world/stores.ts'

/** What is in it; letters by their numbers. */
export interface Redriven {
  /** Sent, by key k1, in the order of their capture. */
  readonly done: RedriveDetail
  readonly first: bigint
  readonly second: bigint
  /** Of the same redrive: the only one of its key, confirmed. */
  readonly confirmed: bigint
  /** Discarded between plan and start. */
  readonly skipped: bigint
  /** Sent some of its letters; the others remain. */
  readonly paused: RedriveDetail
  readonly remaining: bigint
  /** Pending since its capture, long before the redrives, and in none of them; the key is k9. */
  readonly left: bigint
}

export async function fillRedriven(
  kind: StoreKind,
): Promise<{ readonly place: FreshStore; readonly redriven: Redriven }> {
  const desk = await RedriveOffice.open(kind)
  const { office, clock } = desk
  try {
    await desk.createQueue('orders')
    await desk.createQueue('mails')
    const keyed = (key: string, queue = 'orders') => desk.reported(queue, { instanceId: key })
    await keyed('k9', 'mails')
    clock.advance(600_000_000n)
    await keyed('k1')
    await keyed('k1')
    await keyed('k2')
    await keyed('k3')
    await desk.dead('orders', ['a', 'b', 'c'])
    // The newest first.
    const { items } = await office.letters.list({ engine: 'hmac' }, { limit: 50 })
    const [skipped, confirmed, second, first, left] = items
    if (skipped === undefined || confirmed === undefined || second === undefined)
      throw new Error('letters are missing')
    if (first === undefined || left === undefined) throw new Error('letters are missing')
    const terms = { ...PLAIN, order: 'key' } as const
    const orders = { by: 'filter', filter: { originalQueue: 'orders', engine: 'hmac' } } as const
    const plan = await desk.plan({ selection: orders, terms })
    await office.letters.change(skipped, { status: 'Resolved', notes: 'not needed', actor: 'tester' })
    await office.redrives.start(plan.id, 'nell')
    await office.redrives.settle()
    await desk.work('orders', (payload) => payload.includes(':4}'))
    const plain = { by: 'filter', filter: { engine: 'queues' } } as const
    const slow = await desk.run({ selection: plain, terms: { ...terms, rate: 1 } })
    await office.advanceClock(1_100_000n)
    const paused = await office.redrives.pause(slow.id, 'nell', null)
    const members = await office.redrives.members(slow.id, { limit: 10, token: null, outcome: 'remaining' })
    const [next] = members.items
    return {
      place: desk.place,
      redriven: {
        ...{ first: first.id, second: second.id, confirmed: confirmed.id, skipped: skipped.id },
        ...{ left: left.id, paused, remaining: next?.letter ?? 0n },
        done: await office.redrives.read(plan.id),
      },
    }
  } finally {
    await office.close()
  }
}
