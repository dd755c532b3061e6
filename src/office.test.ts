import { afterEach, describe, expect, it, vi } from 'vitest'
import { instant } from './core/clock.ts'
import { TestClock } from './core/test-clock.ts'
import { Office, type OfficeOptions } from './office.ts'

describe('an office that cannot be opened', () => {
  afterEach(() => vi.useRealTimers())

  it('leaves nothing behind that goes on without its store', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] })
    const consumers = [{ id: 'k', channel: 'nowhere', callbackUrl: 'http://host' }]
    await expect(
      Office.open({ store: 'sqlite::memory:', webhooks: { seed: { consumers } } }),
    ).rejects.toThrow("webhooks.seed.consumers[0].channel: 'nowhere' is none of seed.channels")
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the rounds of an office', () => {
  it('are listed, those of its sources too, with the time of the last', async () => {
    const clock = new TestClock()
    clock.freeze(instant(1_700_000_000_000_000n))
    const outbox = [{ name: 'shop', transport: async () => {} }]
    const office = await Office.open({ store: 'sqlite::memory:', clock, webhooks: {}, outbox })
    try {
      const names = office.rounds().map(({ name }) => name)
      expect(new Set(names).size).toBe(names.length)
      expect(names).toEqual(
        expect.arrayContaining([
          ...['queues.sweep', 'runs.look', 'letters.file'],
          ...['webhooks.schedule', 'outbox.letters:shop'],
        ]),
      )
      const filed = () => office.rounds().find(({ name }) => name === 'letters.file')
      expect(filed()).toMatchObject({ lastRunAt: null, failures: 0 })
      clock.advance(1_000_001n)
      await expect.poll(() => filed()?.lastRunAt).toBe(clock.now())
      expect(office.rounds().filter(({ isFailing }) => isFailing)).toEqual([])
    } finally {
      await office.close()
    }
  })
})

describe('the options of an office', () => {
  it.each([
    [undefined, "store: is missing; allowed: 'sqlite:PATH', 'sqlite::memory:' or 'postgres://"],
    [{}, "store: is missing; allowed: 'sqlite:PATH', 'sqlite::memory:' or 'postgres://"],
    [{ store: 5 }, "store: must be a text; allowed: 'sqlite:PATH'"],
    [{ store: 'mysql://x' }, "store: 'mysql://x' is not allowed; allowed: 'sqlite:PATH'"],
    [{ webhook: {} }, "webhook: unknown key; did you mean 'webhooks'?"],
    [{ retries: 3 }, 'retries: unknown key; known keys here: store, postgres, queues, engines, outbox, '],
    [{ postgres: { pool: 8 } }, 'postgres.pool: unknown key; known keys here: poolSize, listenUrl'],
    [{ queues: { dedupWindow: '1m' } }, "queues.dedupWindow: unknown key; did you mean 'dedupeWindow'?"],
    [{ engines: { tables: { days: 90 } } }, 'engines.tables.days: unknown key; '],
    [
      { engines: { definitions: { mine: { queues: 'q' } } } },
      'engines.definitions.mine.queues: unknown key; ',
    ],
    [
      { webhooks: { delivery: { worker: 1 } } },
      "webhooks.delivery.worker: unknown key; did you mean 'workers'?",
    ],
    [{ kafka: { server: [] } }, "kafka.server: unknown key; did you mean 'servers'?"],
    [{ outbox: [{ name: 'shop', retry: 1 }] }, "outbox 'shop': retry is invalid; unknown key"],
  ])('are refused by name: %o', async (changes, problem) => {
    const options =
      changes === undefined || 'store' in changes || Object.keys(changes).length === 0
        ? changes
        : { store: 'sqlite::memory:', ...changes }
    // Wrong on purpose.
    const opening = Office.open(options as unknown as OfficeOptions)
    await expect(opening).rejects.toThrow(problem)
  })
})
