/**
 * Plain queues in the demo: orders that a warehouse rejects or fails at, labels that nobody prints in time, sign-ups.
 * Plain consumers give no error, so letters say how they died, not why.
 */
import { later } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import { formatTimestamp } from '../../core/timestamp.ts'
import { pause } from '../../core/waiting.ts'
import { CUSTOMERS, json, label, linesOf, signUp } from '../../demo/story/shop.ts'
import {
  type DemoOffice,
  type DemoPart,
  type DemoStory,
  leaseInPast,
  makeQueues,
  type Occasion,
  type PastGroup,
  type SourceDemo,
} from '../../demo/story/story.ts'
import type { LeasedItem } from '../../queues/queue.ts'

/** Orders fail here until they are sent back, and are rejected there. */
const SLOW_WAREHOUSE = 'HAM-2'
const CLOSED_WAREHOUSE = 'LEJ-1'

const ORDERS = 'orders'
const ORDER_ATTEMPTS = 3
const LABELS = 'labels'
const SIGN_UPS = 'sign-ups'

export const queuesDemo: SourceDemo = {
  async open(office, story) {
    const terms = { leaseTimeout: '1m', expireTimeout: '24h' }
    await makeQueues(office, [
      { queueName: 'orders-dead', ...terms, expireTimeout: '8760h' },
      { queueName: ORDERS, deadQueue: 'orders-dead', ...terms, maxAttempts: ORDER_ATTEMPTS },
      { queueName: 'labels-dead', ...terms, expireTimeout: '8760h' },
      {
        queueName: LABELS,
        deadQueue: 'labels-dead',
        leaseTimeout: '30s',
        expireTimeout: '1m',
        maxAttempts: 5,
      },
      { queueName: SIGN_UPS, ...terms, maxAttempts: 5 },
    ])
    return queuesPart(office, story)
  },
}

/** While it is out nobody takes labels. */
const PRINTER = 'printer'

function queuesPart(office: DemoOffice, story: DemoStory): DemoPart {
  const produce = (queueName: string, payload: Buffer) =>
    office.queues.produce({ queueName, items: [{ payload }] })
  const ended = new AbortController()
  const { signal } = ended
  let consumers: Promise<unknown> = Promise.resolve()
  return {
    happens: [
      { weight: 15, act: () => produce(ORDERS, order(story, warehouseOf(story))) },
      { weight: 8, act: () => produce(LABELS, label(story)) },
      { weight: 4, act: () => produce(SIGN_UPS, signUp(story)) },
    ],
    died: [
      { weight: 15, act: () => orderDied(office, story) },
      {
        weight: 10,
        // Dies by itself when its time is over.
        async act() {
          const item = { payload: label(story), kind: 'label', encoding: 'application/pdf' }
          await office.queues.produce({ queueName: LABELS, items: [item] })
          return null
        },
      },
    ],
    outages: [{ who: PRINTER, fromSecond: 100, toSecond: 220 }],
    start() {
      consumers = Promise.all([
        consume(office, ORDERS, fateOfOrder, { isAway: () => false, signal }),
        consume(office, SIGN_UPS, () => 'complete', { isAway: () => false, signal }),
        consume(office, LABELS, () => 'complete', { isAway: () => story.isOut(PRINTER), signal }),
      ])
    },
    async stop() {
      ended.abort()
      await consumers
    },
  }
}

function warehouseOf({ chance }: Occasion): string {
  if (chance.isOne(0.12)) return SLOW_WAREHOUSE
  return chance.isOne(0.1) ? CLOSED_WAREHOUSE : chance.pick(['BER-1', 'BER-1', 'CGN-4'])
}

function order({ chance, now }: Occasion, warehouse: string): Buffer {
  const lines = linesOf(chance, chance.isOne(0.06) ? 60 : chance.whole(1, 5))
  return json({
    orderId: `SO-${chance.whole(100_000, 999_999)}`,
    placedAt: formatTimestamp(now),
    customer: chance.pick(CUSTOMERS),
    currency: 'EUR',
    lines,
    total: lines.reduce((sum, { quantity, price }) => sum + quantity * price, 0),
    warehouse,
    ...(chance.isOne(0.2) ? { giftNote: 'Alles Gute zum Geburtstag! 🎂🫖' } : {}),
  })
}

type Fate = 'complete' | 'retry' | 'reject'

/** An order that was sent back is packed by hand. */
function fateOfOrder({ payload, caseId }: LeasedItem): Fate {
  const text = Buffer.from(payload).toString()
  if (text.includes(CLOSED_WAREHOUSE)) return 'reject'
  return text.includes(SLOW_WAREHOUSE) && caseId === undefined ? 'retry' : 'complete'
}

/** Rejected, or failed until its attempts were used up. */
async function orderDied(office: DemoOffice, story: DemoStory): Promise<PastGroup> {
  const payload = order(story, story.chance.isOne(0.4) ? CLOSED_WAREHOUSE : SLOW_WAREHOUSE)
  const items = [{ payload, kind: 'order', encoding: 'application/json' }]
  await office.queues.produce({ queueName: ORDERS, items })
  while (await isTriedAgain(office));
  const { items: letters } = await office.letters.list(
    { engine: 'queues', originalQueue: ORDERS },
    { limit: 1 },
  )
  return { letters, workOn: () => isTriedAgain(office) }
}

async function isTriedAgain(office: DemoOffice): Promise<boolean> {
  const place = { queueName: ORDERS, partition: 0 }
  const [item] = await leaseInPast(office, ORDERS, 1)
  if (item === undefined) return false
  const { id, attempts } = item
  const fate = fateOfOrder(item)
  if (fate === 'complete') await office.queues.complete({ ...place, ids: [id] })
  else await office.queues.retry({ ...place, items: [{ id, dead: fate === 'reject' }] })
  return fate === 'retry' && attempts < ORDER_ATTEMPTS
}

const AGAIN_US = 4_000_000n
const SETBACK_US = 1_000_000n

/** Until `signal` aborts. Never rejects. */
async function consume(
  { queues, clock }: DemoOffice,
  queueName: string,
  fateOf: (item: LeasedItem) => Fate,
  { isAway, signal }: { readonly isAway: () => boolean; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    try {
      if (isAway()) {
        await pause(clock, SETBACK_US, signal)
        continue
      }
      const request = { queueName, clientId: `demo-${queueName}`, batchSize: 10, requestTimeout: '1m' }
      const { items, partition } = await queues.lease(request, signal)
      const fates = Map.groupBy(items, fateOf)
      const place = { queueName, partition }
      const done = (fates.get('complete') ?? []).map(({ id }) => id)
      if (done.length > 0) await queues.complete({ ...place, ids: done })
      const back = [
        ...(fates.get('reject') ?? []).map(({ id }) => ({ id, dead: true })),
        ...(fates.get('retry') ?? []).map(({ id }) => ({ id, retryAt: later(clock.now(), AGAIN_US) })),
      ]
      if (back.length > 0) await queues.retry({ ...place, items: back })
    } catch (error) {
      const isQuiet = error instanceof BartlebyError && error.code === 'lease_timed_out'
      // Unsettled items come back when their lease ends.
      if (!isQuiet) await pause(clock, SETBACK_US, signal)
    }
  }
}
