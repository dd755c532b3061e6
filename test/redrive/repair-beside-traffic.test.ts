/**
 * Recipes beside live traffic: whatever a recipe does to large letters, the server answers everybody else meanwhile. A letter that is
 * worked on in the server itself would hold up every answer, as a hostile patch did for two and a half minutes.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Office } from '../../src/office.ts'
import { sizeOf } from '../world/limits.ts'
import { type SpawnedServer, spawnServer } from '../world/server.ts'
import { type FreshStore, stores } from '../world/stores.ts'

const LETTERS = sizeOf(80, 300)
const ASKED_EVERY_MS = 50
/** Far below what one plan took when it held up the server: two minutes and a half. Proofs run side by side, and a server that gets no core answers late. */
const MOST_MS = sizeOf(5_000, 1_000)
/** Beside letters that are sent, whose 8 MiB in one go the embedded store writes in the thread of the server. */
const MOST_SENDING_MS = sizeOf(5_000, 1_000)

/** 110 KB: lines at the top, and as many at the bottom of 500 levels. */
const LINES = Array.from({ length: 500 }, (_, i) => ({
  sku: `sku-${i}`,
  name: 'a thing with a name that is rather long, as they are',
  price: i + 0.5,
  tags: ['a', 'b'],
}))
const LEVELS = 500
const DEEP = `${'{"a":'.repeat(LEVELS)}${JSON.stringify(LINES)}${'}'.repeat(LEVELS)}`
const PAYLOAD = `{"status":"open","lines":${JSON.stringify(LINES)},"deep":${DEEP}}`

/** Recipes beyond a bound, and what is said of it. The last two take ten seconds each: those of ten letters. */
const BEYOND_BOUNDS: readonly (readonly [name: string, recipe: object, said: RegExp])[] = [
  [
    'copies of copies',
    { patch: Array.from({ length: 7 }, (_, i) => ({ op: 'copy', from: '', path: `/copy${i}` })) },
    /larger than they are, at most 1 GiB/,
  ],
  [
    'a loop without end',
    { mapping: '( $f := function($n){ $f($n + 1) }; $f(1) )' },
    /longer than 1 s for each of 10 letters/,
  ],
  // A slow machine may be at its second before it is at its bytes.
  ['too much memory', { mapping: '$length($pad("", 500000000))' }, /(?:memory|1 s) for each of 10 letters/],
]

/** Letters of a plain queue, without a server. */
async function fill(url: string): Promise<void> {
  const office = await Office.open({ store: url })
  try {
    const settings = { leaseTimeout: '1h', expireTimeout: '240h', requestedPartitions: 1 }
    await office.queues.create({ ...settings, queueName: 'dead' })
    await office.queues.create({ ...settings, queueName: 'orders', deadQueue: 'dead' })
    const some = { queueName: 'orders', clientId: 'killer', batchSize: 20, requestTimeout: '10s' }
    for (let done = 0; done < LETTERS; done += some.batchSize) {
      const items = Array.from({ length: some.batchSize }, () => ({ payload: PAYLOAD }))
      await office.queues.produce({ queueName: 'orders', items, requestTimeout: '1m' })
      const leased = await office.queues.lease(some)
      const dead = leased.items.map(({ id }) => ({ id, dead: true }))
      await office.queues.retry({ queueName: 'orders', partition: leased.partition, items: dead })
    }
  } finally {
    await office.close()
  }
}

interface Reply {
  readonly data: {
    readonly id: string
    readonly state: string
    readonly note: string | null
    readonly numbers: { readonly eligible: number }
  }
  readonly error?: { readonly code: string; readonly message: string }
}

describe.each(stores)('a server on $name whose letters are repaired', (kind) => {
  let store: FreshStore
  let server: SpawnedServer

  beforeAll(async () => {
    store = await kind.fresh()
    await fill(store.url)
    server = await spawnServer({ store: store.url })
  })
  afterAll(async () => {
    await server?.stop()
    await store?.dispose()
  })

  /**
   * Asks whether it is alive, again and again, while `act` is under way; gives what that gave and the longest answer, less what the
   * machine made this test itself wait.
   */
  async function slowestAnswerDuring<T>(act: () => Promise<T>): Promise<{ result: T; slowestMs: number }> {
    let slowestMs = 0
    let lateMs = 0
    const answers = new Set<Promise<void>>()
    const ask = async () => {
      const askedMs = performance.now()
      const reply = await fetch(`${server.url}/health/live`)
      expect(reply.status).toBe(200)
      await reply.text()
      slowestMs = Math.max(slowestMs, performance.now() - askedMs)
    }
    // The first makes the connection.
    await ask()
    slowestMs = 0
    const acting = act()
    let isOver = false
    acting.finally(() => (isOver = true)).catch(() => {})
    do {
      const answer = ask().finally(() => answers.delete(answer))
      answers.add(answer)
      const pausedMs = performance.now()
      await pause(ASKED_EVERY_MS)
      lateMs = Math.max(lateMs, performance.now() - pausedMs - ASKED_EVERY_MS)
    } while (!isOver)
    await Promise.all(answers)
    return { result: await acting, slowestMs: slowestMs - lateMs }
  }

  async function post(path: string, body: object): Promise<Reply> {
    const reply = await fetch(`${server.url}/api/redrives${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    })
    return (await reply.json()) as Reply
  }

  /** The plan, or why there is none, also of one that takes longer than a request. */
  async function plan(repair: object): Promise<{ id: string; eligible: number; refusal: string | null }> {
    let { data, error } = await post('', { action: 'retry', filter: {}, repair })
    while (data?.state === 'planning') {
      await pause(ASKED_EVERY_MS)
      const reply = await fetch(`${server.url}/api/redrives/${data.id}`)
      ;({ data, error } = (await reply.json()) as Reply)
    }
    if (error !== undefined) return { id: '', eligible: 0, refusal: error.message }
    return { id: data.id, eligible: data.numbers.eligible, refusal: data.note }
  }

  it.each<[string, object]>([
    ['an honest patch', { patch: [{ op: 'replace', path: '/lines/250/price', value: 1 }] }],
    ['a mapping', { mapping: '$merge([$, { "status": "shut" }])' }],
    ['rules for headers', { headers: { set: { kind: 'order' } } }],
    [
      'a patch that goes down to the bottom again and again',
      {
        patch: Array.from({ length: 50 }, (_, i) => ({
          op: 'add',
          path: `/deep${'/a'.repeat(LEVELS)}/-`,
          value: i,
        })),
      },
    ],
    [
      'a patch that compares and copies',
      {
        patch: Array.from({ length: 25 }, (_, i) => [
          { op: 'copy', from: '/lines', path: `/copy${i}` },
          { op: 'test', path: `/copy${i}/499/sku`, value: 'sku-499' },
        ]).flat(),
      },
    ],
  ])('answers others while it plans %s', async (_name, repair) => {
    const { result, slowestMs } = await slowestAnswerDuring(() => plan(repair))
    expect(result.refusal).toBeNull()
    expect(result.eligible).toBe(LETTERS)
    expect(slowestMs).toBeLessThan(MOST_MS)
  })

  it.each(sizeOf(BEYOND_BOUNDS.slice(0, 1), BEYOND_BOUNDS))(
    'answers others, and says which bound refuses the plan: %s',
    async (_name, repair, said) => {
      const { result, slowestMs } = await slowestAnswerDuring(() => plan(repair))
      expect(result.refusal).toMatch(said)
      expect(slowestMs).toBeLessThan(MOST_MS)
    },
  )

  it('answers others while it sends them', async () => {
    const patch = [{ op: 'replace', path: '/lines/250/price', value: 1 }]
    const { id } = await plan({ patch })
    const { result, slowestMs } = await slowestAnswerDuring(async () => {
      await post(`/${id}/start`, {})
      for (;;) {
        const reply = await fetch(`${server.url}/api/redrives/${id}`)
        const { data: now } = (await reply.json()) as { data: { state: string; counts: { sent: number } } }
        if (now.state === 'done') return now.counts.sent
        await pause(20)
      }
    })
    expect(result).toBe(LETTERS)
    expect(slowestMs).toBeLessThan(MOST_SENDING_MS)
  })
})
