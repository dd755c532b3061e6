import { afterEach, describe, expect, it, vi } from 'vitest'
import { Office, type OfficeOptions } from './office.ts'

describe('an office that cannot be opened', () => {
  afterEach(() => vi.useRealTimers())

  it('leaves nothing behind that goes on without its store', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const consumers = [{ id: 'k', channel: 'nowhere', callbackUrl: 'http://host' }]
    await expect(
      Office.open({ store: 'sqlite::memory:', webhooks: { seed: { consumers } } }),
    ).rejects.toThrow("on the channel 'nowhere', which does not exist")
    expect(vi.getTimerCount()).toBe(0)
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
    [{ outbox: [{ name: 'shop', retry: 1 }] }, "outbox 'shop': retry is invalid; there is no such option"],
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
