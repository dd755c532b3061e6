/** The demo as a visitor meets it: a past, a present that fails, and groups that behave as they are announced. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../config/index.ts'
import type { RunningServer } from '../http/serve.ts'
import type { LetterSummary } from '../letters/letter.ts'
import { DEMO_SIGNATURES, RETURNING_SIGNATURE } from '../sources/engines/demo-roles.ts'
import { verifyStore } from '../verify/verify.ts'
import { serveDemo } from './serve-demo.ts'

const HOUR_US = 3_600_000_000n
const RETRY = { edit: null, notes: null, actor: 'visitor' }

let server: RunningServer

beforeAll(async () => {
  const config = loadConfig({ env: {}, flags: { port: 0 } })
  const terms = { storeIsGiven: false, logLevelIsGiven: false }
  server = await serveDemo(config, { ...terms, say: () => {}, pastHours: 26 })
})

afterAll(() => server?.stop())

/** The newest pending letter of a group. */
async function pendingOf(signature: string): Promise<LetterSummary> {
  const { items } = await server.office.letters.list({ signature, status: 'Pending' }, { limit: 1 })
  const [letter] = items
  if (letter === undefined) throw new Error(`no letter of ${signature} waits`)
  return letter
}

const letterNow = async (letter: LetterSummary) => (await server.office.letters.get(letter)).letter

describe('the past of a demo', () => {
  it('has letters of every source that needs no other server, in many groups', async () => {
    const { numbers } = server.office.letters
    const { items } = await numbers.counts({}, ['source'])
    expect(items.map(({ source }) => source).sort()).toEqual([
      'engines',
      'http',
      'outbox',
      'queues',
      'webhooks',
    ])
    const { items: groups } = await numbers.signatures()
    expect(groups.length).toBeGreaterThanOrEqual(10)
    expect(groups.map(({ signature }) => signature)).toEqual(
      expect.arrayContaining([...Object.values(DEMO_SIGNATURES), RETURNING_SIGNATURE]),
    )
  })

  it('goes back as far as it is told to, and people have dealt with some of it', async () => {
    const { letters, history, clock } = server.office
    const old = { toDate: clock.now() - 24n * HOUR_US } as { toDate: LetterSummary['lastFailureAt'] }
    expect((await letters.list(old)).items.length).toBeGreaterThan(0)
    const { Pending, Resolved, Expired, unconfirmed } = await letters.numbers.summary()
    expect(Math.min(Pending, Resolved, Expired)).toBeGreaterThan(3)
    expect(unconfirmed).toBe(0)
    for (const operation of ['retry', 'discard', 'expire', 'restore', 'confirm'])
      expect((await history.list({ operation })).items.length, operation).toBeGreaterThan(0)
  })

  it('is told to whoever opens the console', async () => {
    const session = await (await fetch(`${server.url}/api/session`)).json()
    expect(session).toMatchObject({ data: { demo: DEMO_SIGNATURES, environment: { name: 'demo' } } })
  })
})

describe('a letter that is sent back', () => {
  it('is confirmed in the group that heals', async () => {
    const letter = await pendingOf(DEMO_SIGNATURES.healingSignature)
    await server.office.letters.retry(letter, RETRY)
    await expect.poll(async () => (await letterNow(letter)).confirmedAt).not.toBeNull()
  })

  it('is confirmed in the group of the storm while there is none', async () => {
    const letter = await pendingOf(DEMO_SIGNATURES.stormSignature)
    await server.office.letters.retry(letter, RETRY)
    await expect.poll(async () => (await letterNow(letter)).confirmedAt).not.toBeNull()
  })

  it('is confirmed when what is missing was put in, and returns when it was not', async () => {
    const { letters } = server.office
    const { items } = await letters.list({ signature: RETURNING_SIGNATURE, status: 'Pending' }, { limit: 2 })
    const [one, other] = items
    if (one === undefined || other === undefined) throw new Error('too few letters wait')
    await letters.retry(other, RETRY)
    const message = JSON.parse(Buffer.from((await letterNow(one)).payload).toString())
    const payload = Buffer.from(JSON.stringify({ ...message, site: { region: 'eu-west' } }))
    await letters.retry(one, { ...RETRY, edit: { payload } })
    await expect.poll(async () => (await letterNow(one)).confirmedAt).not.toBeNull()
    await expect.poll(async () => (await letterNow(other)).status).toBe('Pending')
    expect((await letterNow(other)).dequeueCount).toBeGreaterThan(other.dequeueCount)
  })
})

describe('the store of a demo', () => {
  it('keeps every promise', async () => {
    const { office } = server
    const [outbox] = office.outboxes.all()
    if (outbox === undefined) throw new Error('the demo has no outbox')
    const { invariants } = await verifyStore(outbox.db, { clock: office.clock })
    expect(invariants.filter(({ broken }) => broken > 0)).toEqual([])
  })
})

describe('the end of a demo', () => {
  it('is one in good order', async () => {
    await server.stop()
    await expect(fetch(`${server.url}/health`)).rejects.toThrow()
  })
})
