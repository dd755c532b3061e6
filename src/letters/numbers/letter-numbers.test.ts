import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { insistOnDocumentedStatuses } from '../../../test/world/documented.ts'
import { stepping } from '../../../test/world/intercepted-database.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { serveApi } from '../../api/calls.ts'
import { instant } from '../../core/clock.ts'
import { encodePageToken } from '../../core/page-token.ts'
import { signatureOf } from '../../core/signature.ts'
import { gate } from '../../http/gate.ts'
import { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import { type Integer, sql } from '../../store/database.ts'
import { change } from '../change.ts'
import { type LetterId, type LetterStatus, STATUS } from '../letter.ts'
import { lockLetter } from '../lists/detail.ts'
import type { FailureReport } from '../reports/report.ts'
import { numberCalls } from '../routes/numbers.ts'
import { inOffice } from '../work.ts'
import { LetterNumbers } from './letter-numbers.ts'

const SECOND = 1_000_000n
const START = 1_800_000_000_000_000n

const move = sql('test.moveLetter', 'UPDATE bartleby.letters SET status = $2 WHERE id = $1 RETURNING drawer')
const remove = sql('test.removeLetter', 'DELETE FROM bartleby.letters WHERE id = $1 RETURNING drawer')

const fingerprint = (errorMessage: string) =>
  signatureOf({ errorClass: 'TypeError', errorMessage, errorStack: null }).fingerprint
const [LOST, SLOW, FULL] = ['connection lost', 'too slow', 'disk full'].map(fingerprint) as [
  // As many as there are texts.
  string,
  string,
  string,
]

describe.each(stores)('the numbers on $name', (kind) => {
  let store: LetterStore
  let numbers: LetterNumbers
  let app: FastifyInstance

  beforeAll(async () => {
    store = await LetterStore.open(kind)
    const engines = new EngineDirectory({ context: 'publisher' })
    numbers = new LetterNumbers(store.db, store.clock, engines)
    app = Fastify({ exposeHeadRoutes: false })
    insistOnDocumentedStatuses(app)
    app.addHook('onRequest', gate([], store.clock))
    serveApi(app, { clock: store.clock, stopping: () => false }, numberCalls(numbers))
    await fill()
  })
  afterAll(async () => {
    await app?.close()
    await store?.close()
  })

  /** Every capture a second after the one before. */
  async function capture(count: number, changes: Partial<FailureReport>): Promise<LetterId[]> {
    const ids: LetterId[] = []
    for (let i = 0; i < count; i++) {
      store.clock.advance(SECOND)
      ids.push(await store.capture(changes))
    }
    return ids
  }

  async function settle(ids: readonly LetterId[], to: LetterStatus): Promise<void> {
    await inOffice(store.db, store.clock, 'test', async (work) => {
      for (const id of ids) {
        const [row] = await work.tx.rows<{ drawer: Integer }>(move, id, STATUS[to])
        const drawer = Number(row?.drawer)
        work.letters.add(drawer, STATUS.Pending, -1)
        work.letters.add(drawer, STATUS[to], 1)
      }
    })
  }

  async function fill(): Promise<void> {
    const hmac = { engine: 'hmac', errorMessage: 'connection lost' }
    const lost = await capture(4, hmac)
    await settle(lost.slice(0, 1), 'Resolved')
    await settle(lost.slice(1, 2), 'Expired')
    await capture(2, { ...hmac, engine: 'tls', originalQueue: 'tls-rotation-queue' })
    await capture(1, { ...hmac, engine: 'update-publisher', originalQueue: null })
    await settle(
      await capture(3, { engine: 'tls', errorMessage: 'too slow', originalQueue: 'q' }),
      'Resolved',
    )
    const [full] = await capture(1, { engine: 'spn', errorMessage: 'disk full', originalQueue: 'q' })
    await inOffice(store.db, store.clock, 'test', async (work) => {
      const [row] = await work.tx.rows<{ drawer: Integer }>(remove, full ?? 0n)
      const drawer = Number(row?.drawer)
      work.letters.add(drawer, STATUS.Pending, -1)
      work.letters.add(drawer, STATUS.removed, 1)
    })
  }

  const get = async (url: string) => {
    const reply = await app.inject(url)
    return { status: reply.statusCode, ...reply.json() }
  }

  describe('counts', () => {
    const count = (
      engine: string,
      originalQueue: string | null,
      status: LetterStatus,
      signature: string,
      count: number,
    ) => ({ source: 'http', engine, originalQueue, status, signature, count })

    it('are exact for every source, engine, queue, status and signature, and never zero', async () => {
      expect(await numbers.counts()).toEqual({
        items: [
          count('hmac', 'hmac-rotation-queue', 'Pending', LOST, 2),
          count('hmac', 'hmac-rotation-queue', 'Resolved', LOST, 1),
          count('hmac', 'hmac-rotation-queue', 'Expired', LOST, 1),
          count('tls', 'q', 'Resolved', SLOW, 3),
          count('tls', 'tls-rotation-queue', 'Pending', LOST, 2),
          count('update-publisher', null, 'Pending', LOST, 1),
        ],
        totals: { Pending: 5, Resolved: 4, Expired: 1 },
      })
    })

    it('can be added up by some of the keys, whatever their order', async () => {
      const { items, totals } = await numbers.counts({}, ['status', 'engine'])
      expect(items).toEqual([
        { engine: 'hmac', status: 'Pending', count: 2 },
        { engine: 'hmac', status: 'Resolved', count: 1 },
        { engine: 'hmac', status: 'Expired', count: 1 },
        { engine: 'tls', status: 'Pending', count: 2 },
        { engine: 'tls', status: 'Resolved', count: 3 },
        { engine: 'update-publisher', status: 'Pending', count: 1 },
      ])
      expect(totals).toEqual({ Pending: 5, Resolved: 4, Expired: 1 })
      expect((await numbers.counts({}, [])).items).toEqual([{ count: 10 }])
      expect((await numbers.counts({ engine: 'spn' }, [])).items).toEqual([])
    })

    it('can be asked of some letters', async () => {
      const totals = async (filter: Parameters<LetterNumbers['counts']>[0]) =>
        (await numbers.counts(filter)).totals
      expect(await totals({ engine: 'tls' })).toEqual({ Pending: 2, Resolved: 3, Expired: 0 })
      expect(await totals({ engine: 'tls', signature: SLOW })).toEqual({
        Pending: 0,
        Resolved: 3,
        Expired: 0,
      })
      expect(await totals({ status: 'Pending' })).toEqual({ Pending: 5, Resolved: 0, Expired: 0 })
      expect(await totals({ originalQueue: 'q' })).toEqual({ Pending: 0, Resolved: 3, Expired: 0 })
      expect(await totals({ source: 'kafka' })).toEqual({ Pending: 0, Resolved: 0, Expired: 0 })
    })

    it('are served in the envelope', async () => {
      const reply = await get('/api/counts?by=source,status&engine=tls')
      expect(reply).toMatchObject({
        status: 'Succeeded',
        data: {
          items: [
            { source: 'http', status: 'Pending', count: 2 },
            { source: 'http', status: 'Resolved', count: 3 },
          ],
          totals: { Pending: 2, Resolved: 3, Expired: 0 },
        },
      })
    })

    it.each([
      ['by=colour', 'parameter_invalid', 'by is invalid'],
      ['by=source,,status', 'parameter_invalid', 'by is invalid'],
      ['colour=red', 'parameter_invalid', 'colour is invalid'],
      ['engine=unknown', 'engine_unknown', 'hmac'],
      ['status=pending', 'status_unknown', 'Pending, Resolved, Expired'],
      ['source=post', 'source_unknown', 'queues, engines'],
    ])('refuse ?%s', async (query, code, message) => {
      const reply = await app.inject(`/api/counts?${query}`)
      expect(reply.statusCode).toBe(400)
      expect(reply.json().error).toMatchObject({ code, message: expect.stringContaining(message) })
    })
  })

  describe('signatures', () => {
    it('are listed with the most open ones first, each with a sample; those without letters are not', async () => {
      const { items, continuationToken } = await numbers.signatures()
      expect(continuationToken).toBeNull()
      expect(items).toEqual([
        {
          signature: LOST,
          version: 1,
          errorClass: 'TypeError',
          title: 'connection lost',
          open: 5,
          total: 7,
          firstSeenAt: instant(START + SECOND),
          lastSeenAt: instant(START + 7n * SECOND),
          sources: ['http'],
          engines: ['hmac', 'tls', 'update-publisher'],
          originalQueues: ['hmac-rotation-queue', 'tls-rotation-queue'],
          sample: {
            engine: 'update-publisher',
            rowKey: expect.stringMatching(/^instance-7-\d{8}T\d{24}Z$/),
            errorMessage: 'connection lost',
          },
          // All within the hour that lasts still.
          trend: [...Array.from({ length: 23 }, () => 0), 7],
        },
        expect.objectContaining({ signature: SLOW, open: 0, total: 3, originalQueues: ['q'] }),
      ])
      expect(items[1]?.sample?.rowKey).toMatch(/^instance-10-/)
    })

    it('can be asked of some letters only', async () => {
      const { items } = await numbers.signatures({ engine: 'hmac' })
      expect(items).toMatchObject([{ signature: LOST, open: 2, total: 4, engines: ['hmac'] }])
      expect(items[0]?.sample?.rowKey).toMatch(/^instance-4-/)
    })

    it('are walked page by page, with a token that is good for the same filters only', async () => {
      const first = await get('/api/signatures?limit=1')
      expect(first.data.items.map((item: { signature: string }) => item.signature)).toEqual([LOST])
      const token = first.data.continuationToken
      const second = await get(`/api/signatures?limit=1&continuationToken=${token}`)
      expect(second.data).toMatchObject({ items: [{ signature: SLOW }], continuationToken: null })
      const forged = encodePageToken({ list: 'signatures' }, { open: '1', total: '1', signature: 'a\0b' })
      const queries = [`engine=tls&continuationToken=${token}`, 'continuationToken=guess']
      for (const query of [...queries, `continuationToken=${forged}`]) {
        const reply = await app.inject(`/api/signatures?${query}`)
        expect(reply.statusCode).toBe(400)
        expect(reply.json().error.code).toBe('continuation_token_invalid')
      }
    })

    it('are served one by one, also when their letters are gone', async () => {
      const { data } = await get(`/api/signatures/${LOST}`)
      expect(data).toMatchObject({
        signature: LOST,
        open: 5,
        firstSeenAtUtc: '2027-01-15T08:00:01.000000Z',
        lastSeenAtUtc: '2027-01-15T08:00:07.000000Z',
      })
      const gone = await get(`/api/signatures/${FULL}`)
      expect(gone.data).toMatchObject({ open: 0, total: 0, sources: [], sample: null })
      const unknown = await app.inject('/api/signatures/1-0000000000000000')
      expect(unknown.statusCode).toBe(404)
      expect(unknown.json().error.code).toBe('signature_unknown')
    })

    it.each([
      ['limit=0', 'parameter_invalid'],
      ['limit=101', 'parameter_invalid'],
      ['signature=x', 'parameter_invalid'],
      ['engine=unknown', 'engine_unknown'],
      ['source=post', 'source_unknown'],
    ])('refuse ?%s', async (query, code) => {
      const reply = await app.inject(`/api/signatures?${query}`)
      expect(reply.statusCode).toBe(400)
      expect(reply.json().error.code).toBe(code)
    })

    it('show the beginning of a long error, and of late reports the time of the failure', async () => {
      const failedAt = instant(START - 3_600n * SECOND)
      const message = `late ${'x '.repeat(2_000)}`
      await store.capture({
        engine: 'spn',
        errorMessage: message,
        firstFailureAt: failedAt,
        lastFailureAt: failedAt,
      })
      const group = await numbers.signature(fingerprint(message))
      expect(group).toMatchObject({ firstSeenAt: failedAt, lastSeenAt: failedAt })
      expect(group.sample?.errorMessage).toBe(message.slice(0, 1_000))
    })
  })

  it('counts a letter once that goes to another place meanwhile', async () => {
    const id = await store.capture({ errorMessage: 'on the move', originalQueue: 'here' })
    const refile = () =>
      inOffice(store.db, store.clock, 'test', async (work) => {
        const letter = await lockLetter(work.tx, id)
        if (letter === null) throw new Error('the letter is gone')
        const { engine, source, lastFailureAt: failedAt, signature: fingerprint } = letter
        const signature = { fingerprint, errorClass: letter.errorClass, title: letter.errorMessage }
        const drawer = await store.registers.drawers.numberOf(work, {
          ...{ source, engine, queue: 'there', signature, failedAt },
        })
        const before = { ...letter, status: STATUS[letter.status] }
        await change(work, 'refile', [{ id, engine, before, drawer, lastFailureAt: failedAt, details: {} }], {
          ...{ actor: 'nell', notes: null },
        })
      })
    let questions = 0
    const db = stepping(store.db, async (verb) => {
      if (verb === 'letters.counts' && ++questions === 2) await refile()
    })
    const moving = fingerprint('on the move')
    const looking = new LetterNumbers(db, store.clock, new EngineDirectory({ context: 'publisher' }))
    const { items } = await looking.counts()
    expect(questions).toBeGreaterThan(1)
    expect(items.filter(({ signature }) => signature === moving)).toMatchObject([
      { originalQueue: 'here', count: 1 },
    ])
  })

  describe('gauges', () => {
    it('tell letters by source, engine and queue, and what was ever captured and removed', async () => {
      const gauges = await numbers.gauges()
      expect(gauges).toContainEqual({
        source: 'http',
        engine: 'hmac',
        queue: 'hmac-rotation-queue',
        letters: { Pending: 2, Resolved: 1, Expired: 1 },
        captured: 4,
        removed: 0,
        unconfirmed: 0,
      })
      expect(gauges).toContainEqual({
        source: 'http',
        engine: 'spn',
        queue: 'q',
        letters: { Pending: 0, Resolved: 0, Expired: 0 },
        captured: 1,
        removed: 1,
        unconfirmed: 0,
      })
    })
  })
})
