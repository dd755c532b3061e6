/** Lists: 25 at a time, newest first, forward and back, whatever the cursor is made of. */
import { beforeAll, describe, expect, it } from 'vitest'
import { brokers, expectRefusal, expectStatus, Lane, type WebhookClient } from './bed.ts'

const ROWS = 80
const SIZES = [25, 25, 25, 5]

interface Page {
  readonly rows: readonly string[]
  readonly next: string | undefined
  readonly previous: string | undefined
}

/** A page of any of the lists, which differ in the names of their parts. */
async function read(client: WebhookClient, path: string): Promise<Page> {
  const body = (await expectStatus(200, client.get(path))).json()
  const { next, previous, ...more } = Object(body.Pages ?? body.pages)
  expect(more).toEqual({})
  const listed = body.Result ?? body.result ?? body.DeadJobs
  if (!Array.isArray(listed)) expect.fail(`there is no list in ${JSON.stringify(body)}`)
  const rows = listed.map((row) => (typeof row === 'string' ? row : row.MessageURL))
  // Both links, or none on an empty page.
  expect([typeof next, typeof previous]).toEqual(Array(2).fill(rows.length === 0 ? 'undefined' : 'string'))
  return { rows, next, previous }
}

/** Every page from the first to the last. */
async function walk(client: WebhookClient, path: string): Promise<Page[]> {
  const pages: Page[] = []
  for (let at: string | undefined = path; at !== undefined; ) {
    const page: Page = await read(client, at)
    if (page.rows.length > 0) pages.push(page)
    expect(pages.length).toBeLessThanOrEqual(SIZES.length)
    at = page.next
  }
  return pages
}

const cursor = (text: string) => encodeURIComponent(Buffer.from(text).toString('base64'))

const numbered = (n: number) => String(n).padStart(2, '0')

brokers('paging', (ground) => {
  let lane: Lane
  /** The rows of each list, newest first. */
  const lists = new Map<string, readonly string[]>()

  beforeAll(async () => {
    const broker = ground()
    const { client } = broker
    lane = await Lane.open(broker, 'pull')
    const made = { producer: [lane.producer], channel: [lane.channel], consumer: [lane.consumer] }
    const messages: string[] = []
    const scheduled: string[] = []
    for (let n = made.producer.length; n < ROWS; n++) {
      // Most of them are of the same moment.
      if (n % 30 === 0) await broker.jump(1)
      const id = `${lane.channel}-${numbered(n)}`
      await Promise.all([
        expectStatus(200, client.put(`/producer/${id}`, {})),
        expectStatus(200, client.put(`/channel/${id}`, {})),
        expectStatus(
          200,
          client.put(`${lane.channelPath}/consumer/${id}`, {
            callbackUrl: 'http://127.0.0.1:1/x',
            type: 'pull',
          }),
        ),
      ])
      made.producer.push(id)
      made.channel.push(id)
      made.consumer.push(id)
    }
    const other = await Lane.open(broker, 'pull')
    made.producer.push(other.producer)
    made.channel.push(other.channel)
    for (let n = 0; n < ROWS; n++) {
      if (n % 30 === 0) await broker.jump(1)
      const at = { 'X-Broker-Scheduled-For': broker.at(3600 + n) }
      const id = (kind: string) => ({ 'X-Broker-Message-ID': `${kind}-${numbered(n)}` })
      await Promise.all([other.broadcast('x', id('m')), other.broadcast('x', { ...at, ...id('s') })])
      messages.push(`${other.channelPath}/message/m-${numbered(n)}`)
      scheduled.push(`${other.channelPath}/scheduled-message/s-${numbered(n)}`)
    }
    const jobs = await other.queued('?limit=100')
    for (const { ID } of jobs) {
      await expectStatus(202, other.move(ID, 'INFLIGHT'))
      await expectStatus(202, other.move(ID, 'DEAD'))
    }
    lists.set('/producers', made.producer.map((id) => `/producer/${id}`).reverse())
    lists.set('/channels', made.channel.map((id) => `/channel/${id}`).reverse())
    lists.set(
      `${lane.channelPath}/consumers`,
      made.consumer.map((id) => `${lane.channelPath}/consumer/${id}`).reverse(),
    )
    lists.set(`${other.channelPath}/messages`, messages.toReversed())
    lists.set(`${other.channelPath}/messages?status=102&status=101`, messages.toReversed())
    lists.set(`${other.channelPath}/scheduled-messages?status=101`, scheduled.toReversed())
    lists.set(`${other.path}/dlq`, messages.toReversed())
  })

  const LISTS = [
    ['producers', /^\/producers$/],
    ['channels', /^\/channels$/],
    ['consumers', /consumers$/],
    ['messages', /\/messages$/],
    ['messages of a status', /\/messages\?/],
    ['scheduled messages of a status', /scheduled-messages/],
    ['dead jobs', /dlq/],
  ] as const

  describe.each(LISTS)('of %s', (_, form) => {
    const list = () => [...lists].find(([path]) => form.test(path)) ?? expect.fail('it was made')

    it('gives every row once, newest first, page by page', async () => {
      const [path, rows] = list()
      const pages = await walk(ground().client, path)
      expect(pages.flatMap((page) => page.rows)).toEqual(rows)
      const sizes = rows.length === ROWS ? SIZES : [25, 25, 25, rows.length - 75]
      expect(pages.map((page) => page.rows.length)).toEqual(sizes)
    })

    it('leads back over the same pages', async () => {
      const [path] = list()
      const { client } = ground()
      const pages = await walk(client, path)
      for (let i = pages.length - 1; i > 0; i--) {
        const before = await read(client, pages[i]?.previous ?? '')
        expect(before).toEqual(pages[i - 1])
      }
      expect((await read(client, pages[0]?.previous ?? '')).rows).toEqual([])
    })

    it('keeps the other parameters in its links', async () => {
      const [path] = list()
      const given = new URL(path, 'http://x').searchParams
      const page = await read(ground().client, path)
      for (const [name, link] of [
        ['next', page.next],
        ['previous', page.previous],
      ] as const) {
        const query = new URL(link ?? '', 'http://x').searchParams
        expect(query.get(name)).toMatch(/^[A-Za-z0-9+/]+=*$/)
        query.delete(name)
        expect([...query].sort()).toEqual([...given].sort())
      }
    })
  })

  const XID = 'dbsggslqmd2qb0aabo3g'
  const TIME = '2026-11-15T01:18:42Z'
  const VALID = cursor(`${XID}|${TIME}`)

  describe.each([
    ['no base64', 'notbase64'],
    ['nothing', ''],
    ['an id that is no xid', cursor(`${'z'.repeat(20)}|${TIME}`)],
    ['an xid with an impossible last character', cursor(`dbsggslqmd2qb0aabo3h|${TIME}`)],
    ['no time', cursor(XID)],
    ['a time that is none', cursor(`${XID}|yesterday`)],
    ['an injection in the id', cursor(`' OR 1=1 --|${TIME}`)],
    ['an injection in the time', cursor(`${XID}|${TIME}') OR 1=1 --`)],
    ['another statement', cursor(`${XID}'; DROP TABLE webhook_producers; --|${TIME}`)],
    ['a zero byte', cursor(`${XID}\0|${TIME}`)],
    ['bytes that are no text', encodeURIComponent(Buffer.from([0xff, 0xfe, 0x7c, 0xff]).toString('base64'))],
    ['very much', 'A'.repeat(4_000)],
  ])('with a cursor of %s', (_, bad) => {
    it('begins at the first page', async () => {
      const { client } = ground()
      const first = await read(client, '/producers')
      for (const name of ['next', 'previous']) {
        expect(await read(client, `/producers?${name}=${bad}`)).toEqual(first)
      }
      // One that is ignored does not stand in the way of the other.
      expect((await read(client, `/producers?next=${VALID}&previous=${bad}`)).rows).toEqual(
        (await read(client, `/producers?next=${VALID}`)).rows,
      )
    })
  })

  it('refuses two directions at once', async () => {
    await expectRefusal(
      400,
      'can not decide on pagination direction! Both after and before provided or pagination is nil',
      ground().client.get(`/producers?next=${VALID}&previous=${VALID}`),
    )
  })

  it('takes cursors with up to nine digits of a second', async () => {
    const { client } = ground()
    const [, rows] = [...lists].find(([path]) => path === '/producers') ?? expect.fail('it was made')
    // Later than every row.
    const late = cursor(`${XID}|2999-01-01T00:00:00.123456789Z`)
    expect((await read(client, `/producers?next=${late}`)).rows).toEqual(rows.slice(0, 25))
    expect((await read(client, `/producers?previous=${late}`)).rows).toEqual([])
  })

  it('reads statuses strictly', async () => {
    const { client } = ground()
    const [path = ''] = [...lists.keys()].filter((each) => each.endsWith('/messages'))
    const all = (await read(client, path)).rows
    for (const query of ['status=102', 'status=102x', 'status=abc', 'status=101&status=102', 'status=']) {
      expect((await read(client, `${path}?${query}`)).rows, query).toEqual(all)
    }
    for (const query of ['status=101', 'status=999', 'status=-102']) {
      expect((await read(client, `${path}?${query}`)).rows, query).toEqual([])
    }
  })
})
