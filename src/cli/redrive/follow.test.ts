/** Watching a redrive of a server that goes away and comes back, answers as told. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { redriveAt } from '../../../test/world/redrive.ts'
import { bartleby } from '../../../test/world/terminal-double.ts'
import { redriveFields } from '../../redrive/view.ts'

type Answer = Parameters<typeof redriveAt>[0] | 'away' | 'unknown'

/** What the server says, in turn; the last one stays. */
let answers: Answer[]

beforeEach(() => {
  vi.stubGlobal('fetch', async (url: string) => {
    const answer = answers.length > 1 ? answers.shift() : answers[0]
    if (answer === 'away') throw new TypeError('fetch failed')
    const reply = (status: number, body: object) => ({ status, text: async () => JSON.stringify(body) })
    if (answer === 'unknown')
      return reply(404, { error: { code: 'redrive_unknown', message: 'redrive does not exist' } })
    if (new URL(url).pathname.endsWith('/letters'))
      return reply(200, { data: { items: [], continuationToken: null } })
    const redrive = redriveAt(answer)
    const data = {
      ...redriveFields(redrive, redrive.plannedAt),
      destinations: [],
      exceptions: [],
      sample: [],
    }
    return reply(200, { data })
  })
})

afterEach(() => vi.unstubAllGlobals())

const watch = (...flags: string[]) => bartleby(['redrive', 'watch', 'c00000000000000000g0', ...flags])

const RUNNING = { state: 'running', counts: { planned: 2, sent: 1 } } as const
const DONE = { state: 'done', counts: { planned: 2, sent: 2 } } as const

it('waits for a server that is away', async () => {
  answers = [RUNNING, 'away', DONE]
  const { code, out, err } = await watch()
  expect([code, out.split('\n')[0]]).toEqual([0, 'Sent 2 letters back: 2 unconfirmed.'])
  expect(err).toMatch(/ running: .*\nno answer, trying on: http.*fetch failed\n.* done: /)
})

it('gives up where asking again cannot help', async () => {
  answers = [RUNNING, 'unknown']
  expect(await watch()).toMatchObject({
    code: 3,
    err: expect.stringMatching(/bartleby: redrive does not exist$/),
  })
})

it('does not wait for outcomes longer than asked', async () => {
  answers = [DONE]
  expect(await watch('--wait', '--wait-timeout', '1ms')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/bartleby: not all outcomes are known yet$/),
  })
  answers = [DONE, { ...DONE, counts: { ...DONE.counts, confirmed: 2 } }]
  expect(await watch('--wait')).toMatchObject({ code: 0, out: expect.stringContaining('2 confirmed') })
})

it('tells why one was stopped, and prints it as JSON', async () => {
  answers = [{ ...DONE, state: 'stopped', note: 'too many came back' }]
  const { code, out, err } = await watch('--json', '--wait')
  expect([code, err]).toEqual([1, 'bartleby: it was stopped: too many came back'])
  expect(JSON.parse(out)).toMatchObject({ state: 'stopped', counts: { unconfirmed: 2 } })
})

it('does not wait in a script for somebody to resume it', async () => {
  answers = [RUNNING, { ...RUNNING, state: 'paused', note: 'the queue is gone' }]
  const { code, err } = await watch()
  expect(code).toBe(1)
  expect(err).toMatch(
    /\nbartleby: it is paused: the queue is gone; go on with: bartleby redrive resume c0+g0$/,
  )
})

it('does not watch a plan', async () => {
  answers = [{}]
  expect(await watch()).toMatchObject({ code: 1, err: expect.stringContaining('bartleby redrive start ') })
})

it('waits for a plan that takes long, and says how far it is', async () => {
  const planning = (matched: number): Answer => ({
    state: 'planning',
    numbers: { matched },
    counts: { planned: 0 },
  })
  answers = [planning(2_000), planning(4_000), { counts: { planned: 5 } }]
  const { code, out, err } = await bartleby(['redrive', 'plan', 'queue:orders'])
  expect(err).toContain('Being planned: 2,000 letters looked at so far.\nBeing planned: 4,000 letters')
  expect([code, out.split('\n')[0]]).toEqual([0, 'Send 5 letters back.'])
})

it('says why a plan could not be made', async () => {
  answers = [
    { state: 'planning', numbers: { matched: 1 } },
    { state: 'stopped', note: 'the repair is too slow' },
  ]
  expect(await bartleby(['redrive', 'plan', 'queue:orders'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('Stopped: the repair is too slow. It was not started.'),
  })
})
