/** What a letter's status does not allow is refused, by the act and without what the letter says. */
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { settle } from '../../test/harness/letter-acts.ts'
import { LetterStore } from '../../test/harness/letter-store.ts'
import { stores } from '../../test/harness/stores.ts'
import { change, NOBODY } from './change.ts'
import { type LetterId, letterId } from './letter.ts'
import { inOffice } from './work.ts'

describe.each(stores)('an act on $name', (kind) => {
  let store: LetterStore
  let expired: LetterId
  let pending: LetterId
  beforeEach(async () => {
    store = await LetterStore.open(kind)
    expired = await store.capture({ errorMessage: 'what nobody may read' })
    pending = await store.capture()
    await settle(store, expired, 'Expired')
  })
  afterEach(() => store.close())

  /** The error of a discard, and how often it was tried. */
  async function refused(ids: readonly LetterId[]): Promise<{ error: unknown; runs: number }> {
    let runs = 0
    const discard = inOffice(store.db, store.clock, 'test.discard', async (work) => {
      runs++
      const letters = ids.map((id) => ({ id, engine: 'hmac' }))
      await change(work, 'discard', letters, NOBODY)
    })
    const error: unknown = await discard.then(
      () => null,
      (reason: unknown) => reason,
    )
    return { error, runs }
  }

  it('that a status does not allow is refused at once, in words of its own', async () => {
    const before = await store.statuses()
    const { error, runs } = await refused([pending, expired])
    expect(runs).toBe(1)
    expect(String(error)).toMatch(
      /^Error: discard: 2 letters were given, and (1|fewer) of them could be changed$/,
    )
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('what nobody may read')
    expect(await store.statuses()).toEqual(before)
  })

  it('on a letter that there is not is refused in the same words', async () => {
    const { error, runs } = await refused([pending, letterId(pending + 1_000n)])
    expect(runs).toBe(1)
    expect(String(error)).toBe('Error: discard: 2 letters were given, and 1 of them could be changed')
  })
})
