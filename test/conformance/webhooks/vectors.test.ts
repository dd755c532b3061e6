/**
 * Every step of the vectors, in their order, on an empty store. Time passes only where a step waits, and callbacks are stamped with
 * the time of the server, so that gaps between attempts are exact however slow the machine is.
 */
import { beforeAll, expect, it } from 'vitest'
import type { Received } from '../../world/receiver.ts'
import { type Broker, brokers, type WebhookAnswer } from './bed.ts'
import { allFilled, differences, filled, type Saved, valueAt } from './matching.ts'
import { type Step, VECTORS } from './vectors.ts'

/** With idle workers an attempt starts so long after it is due at the latest: twice the period of the loops, and a second. */
const LATEST_START_SECONDS = 3
/** What a step of time adds at most. */
const GRAIN_SECONDS = 0.5

async function ask(broker: Broker, request: NonNullable<Step['request']>): Promise<WebhookAnswer> {
  const { method, path, ...rest } = request
  return broker.client.send(method, path, rest)
}

function compare(answer: WebhookAnswer, expected: NonNullable<Step['expect']>): void {
  const headers = Object.fromEntries(
    Object.entries(expected.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const found = [
    ...differences(expected.status, answer.status, 'status'),
    ...(expected.headers === undefined ? [] : differences(headers, answer.headers, 'headers')),
    ...(expected.text === undefined ? [] : differences(expected.text, answer.text, 'text')),
    ...(expected.json === undefined ? [] : differences(expected.json, answer.json(), 'json')),
  ]
  expect(found, answer.text).toEqual([])
}

async function awaitCallbacks(broker: Broker, awaited: NonNullable<Step['await']>): Promise<void> {
  const { path, messageId, body, count, withinSeconds } = awaited
  const seen = () =>
    broker.receiver
      .at(path, messageId)
      .filter((callback) => body === undefined || callback.body.toString() === body)
  await broker.within(withinSeconds, () => {
    expect(seen().length).toBeGreaterThanOrEqual(count)
  })
  await broker.settle()
  expect(seen()).toHaveLength(count)
  for (const callback of seen()) {
    expect(callback.method).toBe(awaited.method ?? 'POST')
    if (awaited.headers !== undefined) expect(differences(awaited.headers, callback.headers)).toEqual([])
  }
  if (awaited.minGapsSeconds !== undefined) compareGaps(seen(), awaited.minGapsSeconds)
  if (awaited.neverPath !== undefined) expect(broker.receiver.at(awaited.neverPath)).toEqual([])
}

function compareGaps(callbacks: readonly Received[], least: readonly number[]): void {
  const gaps = callbacks.slice(1).map(({ at }, i) => Number(at - (callbacks[i]?.at ?? 0n)) / 1e6)
  expect(gaps).toHaveLength(least.length)
  for (const [i, gap] of gaps.entries()) {
    const due = least[i] ?? 0
    expect(gap, `gap ${i + 1}`).toBeGreaterThanOrEqual(due)
    expect(gap, `gap ${i + 1}`).toBeLessThanOrEqual(due + LATEST_START_SECONDS + GRAIN_SECONDS)
  }
}

brokers('the vectors', (ground) => {
  const saved: Saved = new Map()
  const fill = (text: string) => filled(text, saved, (seconds) => ground().at(seconds))

  beforeAll(() => {
    saved.set('CB', ground().receiver.url)
  })

  async function run(step: Step): Promise<void> {
    if (step.request !== undefined) {
      const answer = await ask(ground(), allFilled(step.request, fill))
      if (step.expect !== undefined) compare(answer, allFilled(step.expect, fill))
      for (const [name, from] of Object.entries(step.save ?? {})) {
        const [kind, place = ''] = from.split(':')
        saved.set(name, kind === 'header' ? answer.header(place) : valueAt(answer.json(), place))
      }
    }
    if (step.await !== undefined) await awaitCallbacks(ground(), allFilled(step.await, fill))
    if (step.consumer !== undefined) {
      const { path, ...answer } = allFilled(step.consumer, fill)
      ground().receiver.answer(path, answer)
    }
    if (step.sleepMs !== undefined) await ground().pass(step.sleepMs / 1000)
  }

  it.each(VECTORS.steps.map((step) => [step.id, step] as const))('%s', (_, step) => run(step))

  it('have brought no callback that was not awaited', async () => {
    await ground().pass(10, 1)
    // m1, the one without an id, m3, and dead1: six attempts, then a redirect, then success.
    expect(ground().receiver.requests.map(({ path }) => path)).toEqual(Array(3 + 8).fill('/hook'))
  })
})
