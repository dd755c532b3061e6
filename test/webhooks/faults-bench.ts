/** What tests of webhooks in trouble need: callbacks that wait for their answers, jobs by their status. */
import { expect, vi } from 'vitest'
import { JOB_STATUS_CODE, type JobStatus } from '../../src/sources/webhooks/webhook.ts'
import { openDatabase } from '../../src/store/open.ts'
import type { Lane } from '../conformance/webhooks/lane.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import type { Answer } from '../world/receiver.ts'
import { violationsIn } from '../world/verified.ts'
import type { Broker } from '../world/webhooks/broker.ts'

/** The callbacks of a consumer, which wait for their answers. */
export class HeldCalls {
  readonly #waiting: ((answer: Answer) => void)[] = []

  constructor({ broker, hook }: Lane) {
    broker.receiver.answer(hook, () => new Promise((resolve) => this.#waiting.push(resolve)))
  }

  /** Resolves when so many wait. */
  async until(count: number): Promise<void> {
    await vi.waitFor(() => expect(this.#waiting).toHaveLength(count), {
      timeout: PATIENCE_MS,
      interval: 5,
    })
  }

  /** Answers all that wait. */
  answer(status: number): void {
    for (const resolve of this.#waiting.splice(0)) resolve({ status })
  }
}

type JobStatuses = Record<string, Record<string, { status: number; count: number }[]>>

/** How many jobs there are of each status, as the status endpoint tells it. */
export async function statesOf({ client }: Broker): Promise<Partial<Record<JobStatus, number>>> {
  const channels = (await client.get('/job-status')).json<JobStatuses>()
  const entries = Object.values(channels).flatMap((consumers) => Object.values(consumers).flat())
  const counts = Object.entries(JOB_STATUS_CODE).map(([name, code]) => {
    const ofThis = entries.filter(({ status }) => status === code)
    return [name, ofThis.reduce((sum, { count }) => sum + count, 0)] as const
  })
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

/** Every promise of the store is kept. */
export async function expectVerified({ place, clock }: Broker): Promise<void> {
  const db = openDatabase(place.url, { poolSize: 1 })
  try {
    expect(await violationsIn(db, { clock })).toEqual([])
  } finally {
    await db.close()
  }
}
