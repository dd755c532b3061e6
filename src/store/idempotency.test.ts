import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterStore } from '../../test/world/letter-store.ts'
import { stores } from '../../test/world/stores.ts'
import { inOffice } from '../letters/work.ts'
import { type Answer, answerOnce, forgetKeys, keptAnswer, type OnceKey } from './idempotency.ts'

const DAY = 86_400_000_000n

describe.each(stores)('an idempotency key on $name', (kind) => {
  let store: LetterStore
  let keys = 0
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())

  const freshKey = (): OnceKey => ({ scope: 'caller POST /api/dlq', key: `key-${keys++}` })
  const ask = (once: OnceKey | null, act: () => Promise<Answer>) =>
    inOffice(store.db, store.clock, 'test', (work) => answerOnce(work, once, act))
  const counter = () => {
    let runs = 0
    return { act: async () => ({ status: 201, body: { run: ++runs } }), runs: () => runs }
  }

  it('gives the first answer again', async () => {
    const key = freshKey()
    const { act, runs } = counter()
    expect(await ask(key, act)).toEqual({ status: 201, body: { run: 1 } })
    expect(await ask(key, act)).toEqual({ status: 201, body: { run: 1 } })
    expect(runs()).toBe(1)
  })

  it('has one effect for a hundred calls at once', async () => {
    const key = freshKey()
    let effects = 0
    const act = async () => ({ status: 200, body: { effect: ++effects } })
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(key, act)))
    expect(effects).toBe(1)
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  })

  it('keeps nothing of a call that failed', async () => {
    const key = freshKey()
    const { act } = counter()
    await expect(ask(key, () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
    expect(await ask(key, act)).toEqual({ status: 201, body: { run: 1 } })
  })

  it('counts for its scope alone', async () => {
    const key = freshKey()
    const { act } = counter()
    await ask(key, act)
    expect(await ask({ ...key, scope: 'another caller' }, act)).toEqual({ status: 201, body: { run: 2 } })
  })

  it('is forgotten after a day, and not a moment before', async () => {
    const key = freshKey()
    const { act } = counter()
    await ask(key, act)
    store.clock.advance(DAY)
    expect(await ask(key, act)).toEqual({ status: 201, body: { run: 1 } })
    store.clock.advance(1n)
    expect(await ask(key, act)).toEqual({ status: 201, body: { run: 2 } })
  })

  it('leaves the store when it is old', async () => {
    store.clock.advance(2n * DAY)
    const kept = freshKey()
    await ask(kept, counter().act)
    const now = store.clock.now()
    const forget = (most: number) => store.db.transaction('test', (tx) => forgetKeys(tx, now, most))
    expect(await forget(2)).toBe(2)
    while ((await forget(1_000)) > 0) {}
    expect(await store.db.session('test', (session) => keptAnswer(session, kept, now))).not.toBeNull()
  })
})
