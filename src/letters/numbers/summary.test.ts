/** Counts of drawers that were emptied or filled since their changes were folded last. */
import { expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { foldCounts } from '../../store/fold.ts'
import { change, NOBODY } from '../change.ts'
import type { LetterId } from '../letter.ts'
import { inOffice } from '../work.ts'
import { letterCounter } from './counts.ts'

it.each(stores)('what is counted by signature is exact on $name, folded or not', async (kind) => {
  const store = await LetterStore.open(kind)
  const { db, clock } = store
  const fold = async () => {
    if (kind.name === 'postgres') await foldCounts(db, letterCounter, { clock, owner: 'tester' })
  }
  const erase = (...ids: LetterId[]) =>
    inOffice(db, clock, 'test.erase', (work) =>
      change(
        work,
        'erase',
        ids.map((id) => ({ id, engine: 'hmac' })),
        NOBODY,
      ),
    )
  const capture = (errorMessage: string) => store.capture({ errorMessage })
  /** The counts of each signature: of the whole office, of an engine, and of the groups that are listed. */
  const counts = async () => {
    const { numbers } = store.letters
    const tallies = [await numbers.counts(), await numbers.counts({ engine: 'hmac' })]
    const lists = [await numbers.signatures(), await numbers.signatures({ engine: 'hmac' })]
    return [
      ...tallies.map(({ items }) => items.map(({ count }) => count).sort()),
      ...lists.map(({ items }) => items.map(({ total }) => total).sort()),
    ]
  }
  const same = (...numbers: number[]) => [numbers, numbers, numbers, numbers]
  try {
    const [emptied, filled] = [await capture('the disk is full'), await capture('no connection')]
    await capture('too slow')
    expect(await counts()).toEqual(same(1, 1, 1))
    await erase(filled)
    await fold()
    expect(await counts()).toEqual(same(1, 1))
    // One has a total and no letter, one letters and no total, one a total and more that is not folded.
    await erase(emptied)
    await capture('no connection')
    await capture('no connection')
    await capture('too slow')
    expect(await counts()).toEqual(same(2, 2))
    expect((await store.letters.list({ engine: 'hmac' })).items).toHaveLength(4)
    await fold()
    expect(await counts()).toEqual(same(2, 2))
  } finally {
    await store.close()
  }
})
