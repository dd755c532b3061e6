import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Instant, later } from '../clock.ts'
import { TestClock } from '../test-clock.ts'
import type { Held } from './held.ts'
import type { Claimed, Settlement, WorkerOptions, WorkOrder, WorkTable } from './work-table.ts'
import { Worker } from './worker.ts'

const SECOND = 1_000_000n
const CLAIM_US = 30n * SECOND

class Away extends Error {}

/** Jobs in memory: names, of which some are claimed. */
class MemoryTable implements WorkTable<string, string> {
  readonly clock: TestClock
  readonly waiting: string[] = []
  readonly settled: string[] = []
  readonly renewed: string[][] = []
  /** How many results each call brought. */
  readonly writes: number[] = []
  claims = 0
  again: Claimed<string>['again'] = null
  /** Nothing can be reached. */
  isAway = false
  /** Results of these are not taken. */
  readonly refused = new Set<string>()
  /** Somebody else has these. */
  readonly lost = new Set<string>()
  /** These cannot be renewed now. */
  readonly locked = new Set<string>()

  constructor(clock: TestClock) {
    this.clock = clock
  }

  get until(): Instant {
    return later(this.clock.now(), CLAIM_US)
  }

  async claim({ most }: { readonly most: number }): Promise<Claimed<string>> {
    this.claims += 1
    if (this.isAway) throw new Away()
    const jobs = this.waiting.splice(0, most)
    return { jobs, until: this.until, again: jobs.length > 0 ? 'now' : this.again }
  }

  async renew(held: readonly Held<string>[]): Promise<ReadonlyMap<Held<string>, Instant>> {
    this.renewed.push(held.map(({ job }) => job))
    if (this.isAway) throw new Away()
    const ours = held.filter(({ job }) => !this.lost.has(job))
    return new Map(ours.map((each) => [each, this.locked.has(each.job) ? each.until : this.until]))
  }

  async settle(results: readonly Settlement<string, string>[]): Promise<void> {
    this.writes.push(results.length)
    if (this.isAway) throw new Away()
    if (results.some(({ held }) => this.refused.has(held.job))) throw new Error('refused')
    this.settled.push(...results.map(({ held, result }) => `${held.job}: ${result}`))
  }

  blame(error: unknown): 'away' | 'refused' {
    return error instanceof Away ? 'away' : 'refused'
  }

  idOf(job: string): string {
    return job
  }
}

let clock: TestClock
let table: MemoryTable
let troubles: string[]
/** What runs, by job. */
let runs: Map<string, { readonly held: Held<string>; end(result: string | null): void }>
const workers: Worker<string, string>[] = []

beforeEach(() => {
  clock = new TestClock()
  clock.freeze(clock.now())
  table = new MemoryTable(clock)
  troubles = []
  runs = new Map()
})
afterEach(async () => {
  // Time goes on for whoever waits.
  clock.thaw()
  await Promise.all(workers.splice(0).map((worker) => worker.stop(0)))
})

function workerWith(options: Partial<WorkerOptions<string, string>> = {}): Worker<string, string> {
  const worker = new Worker<string, string>({
    ...{
      clock,
      table,
      room: ({ held }) => 3 - held,
      mostSettled: () => 100,
      mostRefusals: 2,
      lastWritesMs: 0,
    },
    outage: { baseMs: 1_000, factor: 2, maxMs: 8_000, jitter: 0 },
    run: (held) =>
      held
        .unlessEnded(
          () => new Promise<string | null>((resolve) => runs.set(held.job, { held, end: resolve })),
        )
        .catch((reason: unknown) => String(reason)),
    unbegun: (_, why) => `given back, ${why}`,
    reasonOf: (why) => new Error(why),
    onTrouble: (during, _, held) => void troubles.push([during, ...held.map(({ job }) => job)].join(' ')),
    ...options,
  })
  workers.push(worker)
  return worker
}

/** Lets everything happen that needs no time. */
const turns = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
}
const pass = async (us: bigint) => {
  clock.advance(us + 1n)
  await turns()
}
async function begin(options: Partial<WorkerOptions<string, string>> = {}, ...jobs: string[]) {
  table.waiting.push(...jobs)
  const worker = workerWith(options)
  void worker.start()
  await turns()
  return worker
}
const end = async (job: string, result: string | null = 'done') => {
  runs.get(job)?.end(result)
  await turns()
}

describe('claiming', () => {
  it('goes on while there is room and something was there, and begins at once what it got', async () => {
    const worker = await begin({}, 'a', 'b', 'c', 'd')
    expect([...runs.keys()]).toEqual(['a', 'b', 'c'])
    expect(table.claims).toBe(1)
    await end('b')
    expect([...runs.keys()]).toEqual(['a', 'b', 'c', 'd'])
    expect([worker.held, worker.running, worker.settling]).toEqual([3, 3, 0])
    expect(table.settled).toEqual(['b: done'])
  })

  it('rests until it is woken, or until the table said to look again', async () => {
    table.again = later(clock.now(), 5n * SECOND)
    const worker = await begin()
    expect(table.claims).toBe(1)
    table.waiting.push('a')
    worker.wake()
    await turns()
    expect([...runs.keys()]).toEqual(['a'])
    table.waiting.push('b')
    await pass(5n * SECOND)
    expect([...runs.keys()]).toEqual(['a', 'b'])
  })

  it('beside the others takes no look away from them', async () => {
    table.again = later(clock.now(), 5n * SECOND)
    const worker = await begin()
    await worker.claimOnce(async () => ({ jobs: [], until: table.until, again: null }))
    table.waiting.push('a')
    await pass(5n * SECOND)
    expect([...runs.keys()]).toEqual(['a'])
  })

  it('is tried again ever later while the table is away, by the clock for waits', async () => {
    const waitsBy = new TestClock()
    waitsBy.freeze(waitsBy.now())
    table.isAway = true
    await begin({ waitsBy }, 'a')
    await pass(60n * SECOND)
    expect(table.claims).toBe(1)
    waitsBy.advance(SECOND + 1n)
    await turns()
    waitsBy.advance(SECOND + 1n)
    await turns()
    expect(table.claims).toBe(2)
    table.isAway = false
    waitsBy.advance(SECOND)
    await turns()
    expect([...runs.keys()]).toEqual(['a'])
    expect(troubles).toEqual(['claim', 'claim'])
    waitsBy.thaw()
  })

  it('keeps what came with trouble, and waits as after a failure', async () => {
    const worker = workerWith()
    const claim = async () => ({ jobs: ['a'], until: table.until, again: null, trouble: new Away() })
    await expect(worker.claimOnce(claim)).rejects.toThrow(Away)
    await turns()
    expect([...runs.keys()]).toEqual(['a'])
  })

  it('knows what it holds: a job that is claimed again goes on, and is given back when its result was on its way', async () => {
    const worker = await begin({}, 'a')
    table.waiting.push('a')
    worker.wake()
    await turns()
    expect([runs.size, worker.held]).toEqual([1, 1])
    table.isAway = true
    await end('a')
    await worker.claimOnce(async () => ({ jobs: ['a'], until: table.until, again: null }))
    table.isAway = false
    await pass(SECOND)
    expect(table.settled).toEqual(['a: done', 'a: given back, stopped'])
    expect(worker.held).toBe(0)
  })
})

describe('what is held', () => {
  it('is renewed when a third of its claim has passed', async () => {
    await begin({}, 'a', 'b')
    await pass(8n * SECOND)
    expect(table.renewed).toEqual([])
    await pass(2n * SECOND)
    expect(table.renewed).toEqual([['a', 'b']])
    await pass(10n * SECOND)
    expect(table.renewed).toHaveLength(2)
    expect(troubles).toEqual([])
  })

  it('is lost when the table says so: its run is ended, and those that wait are not begun', async () => {
    await begin({ concurrency: 1 }, 'a', 'b', 'c')
    table.lost.add('a').add('b')
    await pass(10n * SECOND)
    expect(troubles).toEqual(['lost a', 'lost b'])
    expect(table.settled).toEqual(['a: Error: lost', 'b: given back, lost'])
    expect([...runs.keys()]).toEqual(['a', 'c'])
  })

  it('is not lost because it could not be renewed for a moment', async () => {
    await begin({ dropUs: SECOND }, 'a')
    table.isAway = true
    await pass(10n * SECOND)
    await pass(10n * SECOND)
    expect(troubles).toEqual(['renew a', 'renew a'])
    table.isAway = false
    await pass(5n * SECOND)
    expect(runs.get('a')?.held.signal.aborted).toBe(false)
    expect(runs.get('a')?.held.until).toBe(table.until)
  })

  it('is dropped in time when it could not be renewed until its claim is about to end', async () => {
    await begin({ dropUs: SECOND }, 'a')
    table.locked.add('a')
    await pass(10n * SECOND)
    await pass(18n * SECOND)
    expect(runs.get('a')?.held.signal.aborted).toBe(false)
    await pass(SECOND)
    expect(runs.get('a')?.held.signal.reason).toEqual(new Error('lost'))
  })

  it('is renewed also while its result waits for the table, in moderation', async () => {
    await begin({ dropUs: SECOND, waitsBy: new TestClock() }, 'a')
    table.isAway = true
    await end('a')
    for (let tenths = 0; tenths < 600; tenths++) {
      clock.advance(SECOND / 10n)
      await new Promise(setImmediate)
    }
    // Its claim has ended meanwhile, and may still be ours.
    expect(table.renewed.length).toBeGreaterThan(50)
    expect(table.renewed.length).toBeLessThan(200)
    expect(troubles.filter((trouble) => trouble.startsWith('lost'))).toEqual([])
    table.isAway = false
    const before = table.renewed.length
    await pass(SECOND)
    expect(table.renewed).toHaveLength(before + 1)
  })

  it('is renewed now when that is asked for', async () => {
    const worker = await begin({}, 'a')
    const held = runs.get('a')?.held
    if (held === undefined) throw new Error('it does not run')
    await pass(5n * SECOND)
    await worker.renew(held)
    expect(held.until).toBe(table.until)
    table.lost.add('a')
    await expect(worker.renew(held)).rejects.toThrow('lost')
  })

  it('runs no longer than it may', async () => {
    await begin({ timeoutUs: 5n * SECOND, room: () => 1 }, 'a')
    await pass(3n * SECOND)
    table.waiting.push('b')
    workers[0]?.wake()
    await turns()
    await pass(2n * SECOND)
    expect(table.settled).toEqual(['a: Error: late'])
    await pass(3n * SECOND)
    expect(table.settled).toEqual(['a: Error: late', 'b: Error: late'])
  })

  it('runs no longer than its claim where that cannot be renewed', async () => {
    const fixed: WorkTable<string, string> = {
      claim: (ask) => table.claim(ask),
      settle: (results) => table.settle(results),
      blame: (error) => table.blame(error),
    }
    await begin({ table: fixed, timeoutUs: 2n * CLAIM_US }, 'a')
    await pass(CLAIM_US - 2n)
    expect(table.settled).toEqual([])
    await pass(2n)
    expect(table.settled).toEqual(['a: Error: late'])
  })
})

describe('results', () => {
  it('are written together when they end together, and what is known already needs no run', async () => {
    await begin({ known: (job) => (job === 'b' ? 'known' : undefined) }, 'a', 'b', 'c')
    expect(table.settled).toEqual(['b: known'])
    for (const run of runs.values()) run.end('done')
    await turns()
    expect(table.settled).toEqual(['b: known', 'a: done', 'c: done'])
    expect(table.writes).toEqual([1, 2])
  })

  it('are kept while the table is away, and nothing else is claimed in their place', async () => {
    const worker = await begin({}, 'a', 'b', 'c', 'd')
    table.isAway = true
    await end('a')
    await pass(SECOND)
    await pass(2n * SECOND)
    expect(table.writes).toEqual([1, 1, 1])
    expect([worker.held, worker.settling]).toEqual([3, 1])
    table.isAway = false
    await pass(4n * SECOND)
    expect(table.settled).toEqual(['a: done'])
    expect([...runs.keys()]).toEqual(['a', 'b', 'c', 'd'])
  })

  it('that are refused are found one by one, tried once more, and left; the others are written', async () => {
    await begin({}, 'a', 'b', 'c')
    table.refused.add('b')
    for (const run of runs.values()) run.end('done')
    await turns()
    expect(table.settled).toEqual(['a: done', 'c: done'])
    expect(table.writes).toEqual([3, 1, 1, 1])
    await pass(SECOND)
    expect(troubles).toEqual(['settle b', 'refused b'])
    expect(workers[0]?.held).toBe(0)
  })

  it('that are refused are left when their claims are over, however often they may be', async () => {
    const worker = await begin({ mostRefusals: Number.POSITIVE_INFINITY }, 'a')
    table.refused.add('a')
    table.lost.add('a')
    await end('a')
    for (let tries = 0; tries < 6; tries++) await pass(4n * SECOND)
    expect(worker.held).toBe(1)
    await pass(8n * SECOND)
    expect(worker.held).toBe(0)
    expect(troubles.at(-1)).toBe('refused a')
  })

  it('that are null are not written', async () => {
    const worker = await begin({}, 'a')
    await end('a', null)
    expect([table.writes, worker.held]).toEqual([[], 0])
  })

  it('of claims that are over are left where the table cannot tell', async () => {
    await begin({ settlesInTime: true }, 'a')
    table.isAway = true
    await end('a')
    clock.advance(40n * SECOND)
    await turns()
    await pass(2n * SECOND)
    expect(troubles).toContain('late a')
    expect(workers[0]?.held).toBe(0)
  })

  it('of those behind come from the order', async () => {
    const waiting: Held<string>[] = []
    const order: WorkOrder<string, string> = {
      add: (held) => void waiting.push(held),
      next: () => (runs.size === 0 ? waiting.shift() : undefined),
      ended: () => waiting.splice(0).map((held) => ({ held, result: 'behind' })),
      takeAll: () => waiting.splice(0),
    }
    await begin({ order, concurrency: 1 }, 'a', 'b', 'c')
    await end('a', 'broken')
    expect(table.settled).toEqual(['b: behind', 'c: behind', 'a: broken'])
  })
})

describe('a stop', () => {
  it('gives back what was not begun, and waits for what runs and for its result', async () => {
    const worker = await begin({ concurrency: 1 }, 'a', 'b', 'c')
    let isStopped = false
    const stopped = worker.stop(60_000).then(() => {
      isStopped = true
    })
    await turns()
    expect(table.settled).toEqual(['b: given back, stopped', 'c: given back, stopped'])
    expect(isStopped).toBe(false)
    await end('a')
    await stopped
    expect(table.settled.at(-1)).toBe('a: done')
    expect([...runs.keys()]).toEqual(['a'])
  })

  it('gives back what a claim brings that was under way', async () => {
    const worker = workerWith()
    const claim = Promise.withResolvers<Claimed<string>>()
    const claimed = worker.claimOnce(() => claim.promise)
    const stopped = worker.stop(60_000)
    claim.resolve({ jobs: ['a'], until: table.until, again: null })
    await Promise.all([claimed, stopped])
    expect(table.settled).toEqual(['a: given back, stopped'])
    expect(runs.size).toBe(0)
  })

  it('cuts short what runs when its time is over, and writes that down', async () => {
    const worker = await begin({ lastWritesMs: 1_000 }, 'a')
    const stopped = worker.stop(4_000)
    await pass(4n * SECOND)
    await stopped
    expect(table.settled).toEqual(['a: Error: stopped'])
  })

  it('does not wait for a table that is away: a few tries, soon', async () => {
    const worker = await begin({}, 'a')
    table.isAway = true
    await end('a')
    const stopped = worker.stop(60_000)
    for (let tries = 0; tries < 4; tries++) await pass(2n * SECOND)
    await stopped
    expect(troubles.at(-1)).toBe('late a')
    expect(table.writes).toHaveLength(5)
  })

  it('does not wait for a claim that is never answered', async () => {
    const worker = workerWith()
    void worker.claimOnce(() => new Promise(() => {}))
    const stopped = worker.stop(4_000)
    await pass(4n * SECOND)
    await stopped
  })
})
