import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ProduceReceipt } from '../queue.ts'
import type { ProduceAsk } from '../verbs/produce.ts'
import { Batch, BREADTH, type CompleteAsk, type Job, type Permits, type RetryAsk } from './cycle.ts'

const partition = { part: 1, number: 0, holdsLetters: false, idPrefix: 'prefix' }
const job = <Ask, Answer>(ask: Ask): Job<Ask, Answer> => ({ ask, resolve: () => {}, reject: () => {} })

const produceOf = (count: number, payloadBytes = 1): Job<ProduceAsk, ProduceReceipt> => {
  const payload = new Uint8Array(payloadBytes)
  const item = { encoding: '', kind: '', reference: '', payload, enqueueAt: null, dedupeKey: null }
  return job({ items: Array.from({ length: count }, () => item) })
}
const completeOf = (...serials: number[]): Job<CompleteAsk, void> => job({ partition, serials })
const retryOf = (...serials: number[]): Job<RetryAsk, void> =>
  job({
    partition,
    items: serials.map((serial) => ({
      serial,
      retryAt: null,
      dead: false,
      run: null,
      error: null,
      unspent: false,
    })),
  })
const batchOf = (jobs: Partial<{ -readonly [Kind in keyof Batch]: Batch[Kind] }>): Batch =>
  Object.assign(new Batch(), jobs)
const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i)

describe('the requests of a cycle', () => {
  it('record no more of what workers did than fits into memory', () => {
    const run = {
      engine: 'hmac',
      operation: 'rotate',
      instanceId: 'publisher',
      correlationId: 'c',
      actor: 'worker',
      durationMs: 1,
      input: new Uint8Array(10_000_000),
      output: null,
    }
    const ask = (serial: number) => ({ partition, serials: [serial], runs: new Map([[serial, run]]) })
    const pending = batchOf({
      completes: range(1, 10).map((serial) => job<CompleteAsk, void>(ask(serial))),
    })
    // Nor does what comes next count as picked up while these wait.
    expect(pending.leavesRoom(BREADTH.postgres)).toBe(false)
    expect(pending.take(BREADTH.postgres).completes).toHaveLength(2)
  })

  it('are all that has gathered, in order of arrival', () => {
    const completes = [completeOf(1, 2), completeOf(3)]
    const retries = [retryOf(4), retryOf(5)]
    const pending = batchOf({ completes: [...completes], retries: [...retries] })
    const batch = pending.take(BREADTH.sqlite)
    expect(batch.completes).toEqual(completes)
    expect(batch.retries).toEqual(retries)
  })

  it('leave a second request about the same item for the next cycle, and those behind it too', () => {
    const pending = batchOf({
      completes: [completeOf(1), completeOf(1, 2), completeOf(3)],
      retries: [retryOf(1), retryOf(4)],
    })
    const batch = pending.take(BREADTH.sqlite)
    expect(batch.completes).toHaveLength(1)
    expect(batch.retries).toHaveLength(0)
    expect(pending.completes).toHaveLength(2)
    expect(pending.retries).toHaveLength(2)
  })

  it('are bounded in items and in bytes', () => {
    const many = batchOf({ produces: range(0, 100).map(() => produceOf(1_000)) })
    expect(many.take(BREADTH.sqlite).produces).toHaveLength(4)
    const large = batchOf({ produces: range(0, 100).map(() => produceOf(1, 5_000_000)) })
    expect(large.take(BREADTH.sqlite).produces).toHaveLength(4)
  })

  it('leave out what goes to the tail while that is not permitted', () => {
    const pending = batchOf({
      produces: [produceOf(1)],
      completes: [completeOf(1)],
      retries: [retryOf(2)],
    })
    const permits = { inserts: false, buries: true, deals: true }
    expect(pending.gathered(permits)).toBe(1)
    expect(pending.take(BREADTH.postgres, permits).jobs).toHaveLength(1)
    expect(pending.gathered({ ...permits, inserts: true })).toBe(2)
  })

  it('leave out what may go to the dead queue while that is not permitted, and only that', () => {
    const pending = batchOf({
      produces: [produceOf(1)],
      completes: [completeOf(1)],
      retries: [retryOf(2)],
      deaths: [retryOf(3)],
    })
    const kindsTaken = (permits: Permits) =>
      Object.entries(pending.take(BREADTH.postgres, permits)).flatMap(([kind, jobs]) =>
        jobs.length > 0 ? kind : [],
      )
    expect(kindsTaken({ inserts: true, buries: false, deals: true })).toEqual(['produces', 'completes'])
    expect(kindsTaken({ inserts: false, buries: true, deals: true })).toEqual(['deaths'])
    expect(kindsTaken({ inserts: true, buries: true, deals: true })).toEqual(['retries'])
  })

  it('include some of every kind, whatever floods the queue', () => {
    const pending = batchOf({
      produces: range(0, 50).map(() => produceOf(1_000)),
      completes: range(0, 50).map((i) => completeOf(...range(1 + i * 1_000, 1_000))),
      retries: [retryOf(100_000)],
      deaths: [retryOf(100_002)],
      extensions: [job({ partition, serials: [100_001], leaseUs: 1n })],
      sweeps: [job({ leases: [], expired: [], scheduled: [], held: [] })],
    })
    const batch = pending.take(BREADTH.sqlite)
    expect(batch.produces.length).toBeGreaterThan(0)
    expect(batch.completes.length).toBeGreaterThan(0)
    expect(batch.retries).toHaveLength(1)
    expect(batch.deaths).toHaveLength(1)
    expect(batch.extensions).toHaveLength(1)
    expect(batch.sweeps).toHaveLength(1)
  })

  it('are each taken once, sooner or later', () => {
    const asks = fc.array(fc.uniqueArray(fc.nat(12), { minLength: 1, maxLength: 4 }), { maxLength: 12 })
    fc.assert(
      fc.property(
        asks,
        asks,
        fc.array(fc.integer({ min: 1, max: 3_000 }), { maxLength: 12 }),
        (some, others, sizes) => {
          const pending = batchOf({
            produces: sizes.map((size) => produceOf(size)),
            completes: some.map((serials) => completeOf(...serials)),
            retries: others.map((serials) => retryOf(...serials)),
          })
          const all = pending.jobs
          const taken: unknown[] = []
          while (pending.jobs.length > 0) {
            const batch = pending.take(BREADTH.sqlite).jobs
            expect(batch.length).toBeGreaterThan(0)
            taken.push(...batch)
          }
          expect(new Set(taken)).toEqual(new Set(all))
          expect(taken).toHaveLength(all.length)
        },
      ),
    )
  })
})
