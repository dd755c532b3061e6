import { afterEach, describe, expect, it, vi } from 'vitest'
import { Office } from './office.ts'

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
