/** What becomes of letters that cannot be acted on at once, against a server that answers as told. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bartleby } from '../terminal-double.ts'

/** The reasons for which a letter is refused, in turn; then it is sent. */
let refusals: Record<string, string[]>
let sent: string[]
let total: number
let names: string[]
let onRetry: () => void

beforeEach(() => {
  refusals = {}
  sent = []
  names = ['e', 'd', 'c', 'b', 'a']
  total = names.length
  onRetry = () => {}
  vi.stubGlobal('fetch', async (url: string) => {
    const { pathname } = new URL(url)
    const answer = (status: number, body: object) => ({ status, text: async () => JSON.stringify(body) })
    if (pathname === '/api/dlq/total') return answer(200, { data: { total, exact: true } })
    if (pathname === '/api/dlq') {
      const items = names.map((rowKey) => ({ engine: 'kafka', rowKey }))
      return answer(200, { data: { items, continuationToken: null } })
    }
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
})
