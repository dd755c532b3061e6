/** Two servers on one PostgreSQL: a letter is sent once, whoever asks where, and both tell the same story. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Clerk } from '../world/clerk.ts'
import { sizeOf } from '../world/limits.ts'
import { type Detail, type Key, type Listed, pathTo } from '../world/office-api.ts'
import { type RunningServer, spawnServer, startServer } from '../world/server.ts'
import { type FreshStore, freshPostgres } from '../world/stores.ts'
import { Wire } from '../world/wire.ts'

const LETTERS = sizeOf(150, 1_000)
const CLIENTS = 8

describe('two servers on one PostgreSQL', () => {
  let place: FreshStore
  let servers: RunningServer[] = []
  let wires: Wire[] = []
  const clerk = (n: number) => new Clerk(wires[n % 2] ?? expect.fail('two were started'), `client-${n}`)

  beforeAll(async () => {
    place = await freshPostgres()
    const options = { store: place.url, testApi: false }
    // A process of its own shares nothing with the other but the store, and one that does is enough for that.
    servers = await Promise.all([startServer(options), spawnServer(options)])
    wires = servers.map(({ url }) => new Wire(url))
  })

  afterAll(async () => {
    await Promise.all(wires.map((wire) => wire.close()))
    await Promise.all(servers.map((server) => server.stop()))
    servers = []
    await place.dispose()
  })

  /** Lets `count` items die and gives their letters. */
  async function buried(queue: string, count: number): Promise<Listed[]> {
    const first = clerk(0)
    await first.createPair(queue)
    await first.produce(
      queue,
      Array.from({ length: count }, (_, n) => `${queue} ${n}`),
    )
    const { items } = await first.lease(queue, count)
    expect(
      (
        await first.bury(
          queue,
          items.map(({ id }) => id),
        )
      ).status,
    ).toBe(200)
    const letters = await clerk(1).walk({ originalQueue: queue })
    expect(letters).toHaveLength(count)
    return letters
  }

  it(`send each of ${LETTERS} letters once, though ${CLIENTS} clients retry them all`, async () => {
    const letters = await buried('contested', LETTERS)
    const sent = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, n) => {
        const client = clerk(n)
        // Each starts elsewhere, and half of them go backwards, so that they meet everywhere.
        const start = Math.floor((n * LETTERS) / CLIENTS)
        const turned = [...letters.slice(start), ...letters.slice(0, start)]
        const mine = n % 4 < 2 ? turned : turned.reverse()
        let count = 0
        for (let i = 0; i < mine.length; i += 5) {
          const outcomes = await Promise.all(mine.slice(i, i + 5).map((letter) => client.retry(letter)))
          count += outcomes.filter(Boolean).length
        }
        return count
      }),
    )
    expect(sent.reduce((sum, count) => sum + count, 0)).toBe(LETTERS)
    const { items } = await clerk(0).lease('contested', LETTERS)
    expect(new Set(items.map(({ payload }) => payload)).size).toBe(LETTERS)
    expect(items).toHaveLength(LETTERS)
    expect((await clerk(1).lease('contested', 10)).items).toEqual([])
    expect((await clerk(0).lease('contested-dead', 10)).items).toEqual([])
    for (const letter of letters.slice(0, 50)) {
      const { history, status } = await detail(clerk(1), letter)
      expect(status).toBe('Resolved')
      expect(history.map(({ operation }) => operation).sort()).toEqual(['capture', 'retry'])
    }
    expect(await walkedStatuses(clerk(0), 'contested')).toEqual({ Resolved: LETTERS })
  })

  it('give the same first answer to one idempotency key', async () => {
    const [letter = expect.fail('one was made')] = await buried('keyed', 1)
    const headers = { 'idempotency-key': 'the-same-everywhere' }
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) => clerk(n).api('POST', pathTo(letter, '/retry'), { headers })),
    )
    expect(replies.map(({ status }) => status)).toEqual(Array(40).fill(200))
    expect(new Set(replies.map(({ data }) => JSON.stringify(data))).size).toBe(1)
    expect((await clerk(1).lease('keyed', 10)).items).toHaveLength(1)
  })

  it('make one letter of one source id', async () => {
    const body = {
      engine: 'hmac',
      originalMessage: 'x',
      errorMessage: 'e',
      sourceId: 'both',
      instanceId: 'both',
    }
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) => clerk(n).api('POST', '/api/dlq', { body })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([...Array(39).fill(200), 201])
    expect(await clerk(0).walk({ instanceId: 'both' })).toHaveLength(1)
  })

  it("take each other's continuation tokens", async () => {
    const letters = await buried('paged', 10)
    const query = { originalQueue: 'paged', limit: 3 }
    const keys: string[] = []
    let continuationToken: string | undefined
    for (let n = 0; n === 0 || continuationToken !== undefined; n++) {
      const page = await clerk(n).page({ ...query, continuationToken })
      keys.push(...page.items.map(({ rowKey }) => rowKey))
      continuationToken = page.continuationToken ?? undefined
    }
    expect(keys).toEqual(letters.map(({ rowKey }) => rowKey))
  })

  it('count the same', async () => {
    await buried('counted', 100)
    const [one, two] = await Promise.all([0, 1].map((n) => clerk(n).expects([200], 'GET', '/api/counts')))
    const sorted = (data: unknown) =>
      (data as { items: unknown[] }).items.map((item) => JSON.stringify(item)).sort()
    expect(sorted(one?.data)).toEqual(sorted(two?.data))
  })

  it('confirm at one what was retried at the other', async () => {
    const [letter = expect.fail('one was made')] = await buried('confirmed', 1)
    await clerk(0).retry(letter)
    const { items } = await clerk(1).lease('confirmed', 1)
    await clerk(1).complete(
      'confirmed',
      items.map(({ id }) => id),
    )
    expect((await detail(clerk(0), letter)).confirmedAtUtc).toEqual(expect.any(String))
  })
})

async function detail(clerk: Clerk, key: Key): Promise<Detail> {
  const { data } = await clerk.expects([200], 'GET', pathTo(key))
  return data as Detail // the reply of a letter's page
}

async function walkedStatuses(clerk: Clerk, originalQueue: string): Promise<Record<string, number>> {
  const letters = await clerk.walk({ originalQueue })
  const groups = Object.entries(Object.groupBy(letters, ({ status }) => status))
  return Object.fromEntries(groups.map(([status, all]) => [status, all.length]))
}
