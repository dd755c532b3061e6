/** What becomes of letters that cannot be acted on at once, against a server that answers as told. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bartleby } from '../terminal-double.ts'

/** The reasons for which a letter is refused, in turn; then it is sent. */
let refusals: Record<string, string[]>
let sent: string[]
let total: number
let names: string[]
let exact: boolean
/** Pages of the list that are given; the one after them fails. */
let pages: number
/** What a look at one letter gives. */
let look: () => object
let onRetry: () => void

beforeEach(() => {
  refusals = {}
  sent = []
  names = ['e', 'd', 'c', 'b', 'a']
  total = names.length
  exact = true
  pages = 1
  look = () => ({ confirmedAtUtc: 'then', resolution: 'retry' })
  onRetry = () => {}
  vi.stubGlobal('fetch', async (url: string, { method = 'GET' }: { method?: string } = {}) => {
    const { pathname } = new URL(url)
    const answer = (status: number, body: object) => ({ status, text: async () => JSON.stringify(body) })
    if (pathname === '/api/dlq/total') return answer(200, { data: { total, exact } })
    if (pathname === '/api/dlq') {
      const items = names.map((rowKey) => ({ engine: 'kafka', rowKey }))
      if (pages === 0) return answer(503, { error: { code: 'store_unavailable', message: 'it is away' } })
      pages -= 1
      return answer(200, { data: { items, continuationToken: pages === 1 ? 'more' : null } })
    }
    if (method === 'GET') return answer(200, { data: look() })
    const [, , , , name = ''] = pathname.split('/')
    onRetry()
    const code = refusals[name]?.shift()
    if (code === undefined) {
      sent.push(name)
      return answer(200, { data: { messageId: 'm', queue: 'q' } })
    }
    return answer(409, { error: { code, message: `${name} is refused` } })
  })
})

afterEach(() => vi.unstubAllGlobals())

const retry = (world: Parameters<typeof bartleby>[1] = {}) =>
  bartleby(['letters', 'retry', '--query', 'engine:kafka', '--yes'], world)

describe('bulk work', () => {
  it('takes the letters of a key in the order in which they came, though the list goes backwards', async () => {
    for (const name of ['e', 'd', 'c', 'b']) refusals[name] = ['letter_not_next']
    expect(await retry()).toMatchObject({ code: 0, out: 'of 5 letters 5 were sent back' })
    expect(sent).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  it('waits for a service that is busy', async () => {
    refusals.c = ['letter_service_busy', 'letter_service_busy']
    expect(await retry()).toMatchObject({ code: 0, out: 'of 5 letters 5 were sent back' })
    expect(sent.at(-1)).toBe('c')
  })

  it('skips what has moved on, and what was gone before its turn', async () => {
    refusals.d = ['letter_status_wrong']
    total = 7
    expect(await retry()).toMatchObject({
      code: 0,
      out: 'of 7 letters 4 were sent back, 3 were skipped because no longer pending',
    })
  })

  it('accounts for failures of all kinds', async () => {
    refusals = { a: ['letter_queue_gone'], b: ['letter_not_next', 'letter_not_next'], c: ['letter_unknown'] }
    const { code, out, err } = await retry()
    expect({ code, out }).toEqual({
      code: 1,
      out: 'of 5 letters 2 were sent back, 1 was skipped because no longer pending, 2 failed',
    })
    expect(err).toContain('bartleby: 2 failed:\n  kafka a: a is refused\n  kafka b: b is refused')
  })

  it('stops where no letter would fare better, and says how many are left', async () => {
    for (const name of names) refusals[name] = ['stopping']
    const { code, out, err } = await retry()
    expect({ code, out }).toEqual({ code: 1, out: 'of 5 letters 0 were sent back, 5 were left as they were' })
    expect(err).toMatch(/bartleby: [a-e] is refused$/)
  })

  it('lets what is under way end at Ctrl-C, and accounts for it', async () => {
    let interrupt = () => {}
    onRetry = () => interrupt()
    const { code, out, err } = await retry({
      onInterrupt: (listener) => {
        interrupt = listener
      },
    })
    const [, done, left] = /^of 5 letters (\d) w(?:as|ere) sent back, (\d) w/.exec(out) ?? []
    expect([code, Number(done) + Number(left)]).toEqual([1, 5])
    expect(sent).toHaveLength(Number(done))
    expect(err).toContain('interrupted')
  })

  it('does not pass for complete when it was stopped and nobody knows how many letters there were', async () => {
    exact = false
    for (const name of names) refusals[name] = ['stopping']
    expect(await retry()).toMatchObject({ code: 1, err: expect.stringMatching(/is refused$/) })
  })

  it('accounts for what was done when the rest of the list cannot be had', async () => {
    total = 10
    pages = 2
    const listed = retry()
    onRetry = () => {
      pages = 0
    }
    expect(await listed).toMatchObject({
      code: 1,
      out: 'of 10 letters 5 were sent back, 5 were left as they were',
      err: expect.stringContaining('it is away'),
    })
  })

  it('accounts for what was sent although nobody can say what became of it', async () => {
    look = () => {
      throw new TypeError('fetch failed')
    }
    const { code, out } = await bartleby([
      'letters',
      'retry',
      '--query',
      'engine:kafka',
      '--yes',
      '--wait',
      '--wait-timeout',
      '1ms',
      '--limit',
      '1',
    ])
    expect({ code, out }).toEqual({
      code: 1,
      out: 'of 1 letter 1 was sent back\nof 1 sent back 0 were confirmed, 0 came back, 1 is unconfirmed',
    })
  })

  it('asks about no more letters once it was interrupted', async () => {
    let looks = 0
    let interrupt = () => {}
    look = () => {
      looks += 1
      interrupt()
      return { confirmedAtUtc: null, resolution: 'retry' }
    }
    names = Array.from({ length: 40 }, (_, i) => `n${i}`)
    total = names.length
    const { code, out } = await bartleby(['letters', 'retry', '--query', 'engine:kafka', '--yes', '--wait'], {
      onInterrupt: (listener) => {
        interrupt = listener
      },
    })
    expect([code, looks < 10]).toEqual([1, true])
    expect(out).toContain('of 40 sent back 0 were confirmed, 0 came back, 40 are unconfirmed')
  })
})
