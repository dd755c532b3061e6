/**
 * What a letter's status does not allow is refused, by the act and without what the letter says. An act on many letters takes no more
 * statements than one on a single letter, and is counted as the table of transitions says.
 */
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { noting } from '../../test/world/counted-statements.ts'
import { settle } from '../../test/world/letter-acts.ts'
import { LetterStore } from '../../test/world/letter-store.ts'
import { stores } from '../../test/world/stores.ts'
import { operationKindNumber } from '../history/record.ts'
import { PLAIN_RECORD } from './bury.ts'
import type { DeathNote } from './capture.ts'
import { change, NOBODY } from './change.ts'
import { type LetterId, letterId } from './letter.ts'
import { type CaseRow, lockLettersOf } from './locked.ts'
import { type Outcomes, outcomesOf } from './numbers/counts.ts'
import { ACTIVITY_NAMES, type ActivityName } from './numbers/shapes.ts'
import { readPlaceCounts } from './numbers/summary.ts'
import { type TransitionName, transitionOf } from './transitions.ts'
import { inOffice, type OfficeWork } from './work.ts'

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

type Doing = (work: OfficeWork, cases: readonly CaseRow[]) => Promise<void>

const plain = (cases: readonly CaseRow[]) => cases.map(({ id, engine }) => ({ id, engine }))
const known = (cases: readonly CaseRow[]) =>
  cases.map((before) => ({ id: before.id, engine: before.engine, before }))

/** The letters fail anew, each in its drawer. */
const failing: Doing = async (work, cases) => {
  const { now, tx } = work
  const series = await operationKindNumber(tx, 'hmac', 'reopen', 'Succeeded')
  const failure: Omit<DeathNote, 'drawer'> = {
    ...({ source: 'http', engine: 'hmac', queue: null, reason: 'failed' } as const),
    ...{ errorClass: 'Error', errorMessage: 'it failed again', errorStack: null, failedBy: null },
    ...{ instanceId: null, correlationId: null, record: { ...PLAIN_RECORD, operation: 'reopen' }, series },
    ...{ capturedAt: now, firstFailureAt: now, lastFailureAt: now },
  }
  const failed = known(cases).map((letter) => ({
    ...letter,
    ...{ note: { ...failure, drawer: letter.before.drawer }, deliveries: 1, diedAs: null, position: null },
  }))
  await change(work, 'reopen', failed, NOBODY)
}

const REDRIVE = { number: 7, id: 'a-redrive', recipe: null }
const FOR_REDRIVE = { ...NOBODY, redrive: REDRIVE }

/** Every act, in an order that letters can go through. */
const LIFE: readonly (readonly [TransitionName, Doing])[] = [
  ['intend', (work, cases) => change(work, 'intend', plain(cases), FOR_REDRIVE)],
  ['forgo', (work, cases) => change(work, 'forgo', plain(cases), NOBODY)],
  [
    'retry',
    (work, cases) => {
      const sent = plain(cases).map((letter) => ({
        ...letter,
        sentAs: `item-${letter.id}`,
        sentTo: 'orders',
      }))
      return change(work, 'retry', sent, FOR_REDRIVE)
    },
  ],
  ['confirm', (work, cases) => change(work, 'confirm', known(cases), NOBODY)],
  ['reopen', failing],
  ['discard', (work, cases) => change(work, 'discard', plain(cases), NOBODY)],
  [
    'restore',
    (work, cases) => {
      const restored = known(cases).map((letter) => ({ ...letter, deliveries: 0 }))
      return change(work, 'restore', restored, NOBODY)
    },
  ],
  [
    'refile',
    (work, cases) => {
      const refiled = known(cases).map((letter) => ({
        ...{ ...letter, drawer: letter.before.drawer, lastFailureAt: work.now },
      }))
      return change(work, 'refile', refiled, NOBODY)
    },
  ],
  ['complete', (work, cases) => change(work, 'complete', plain(cases), NOBODY)],
  ['reopen', failing],
  ['expire', (work, cases) => change(work, 'expire', plain(cases), NOBODY)],
  ['remove', (work, cases) => change(work, 'remove', plain(cases), NOBODY)],
]
const ERASED = [
  'erase',
  (work, cases) => change(work, 'erase', plain(cases), NOBODY),
] as const satisfies readonly [TransitionName, Doing]

/**
 * Statements that every further letter costs. None on PostgreSQL. SQLite runs what is written to a letter, and its row of history,
 * once for each (decision 60): it has no trips to save, and joined with a list it copies whole rows aside first.
 */
function eachCosts(act: TransitionName, store: 'sqlite' | 'postgres'): number {
  const { to, word } = transitionOf(act)
  if (store === 'postgres' || to === 'removed') return 0
  return word === null ? 1 : 2
}

describe.each(stores)('the statements of an act on $name', (kind) => {
  let store: LetterStore
  beforeEach(async () => {
    store = await LetterStore.open(kind)
  })
  afterEach(() => store.close())

  /** How many statements each act takes on this many letters. */
  async function counted(letters: number): Promise<ReadonlyMap<TransitionName, number>> {
    const [living, erased] = [await store.captureMany(letters), await store.captureMany(letters)]
    const counts = new Map<TransitionName, number>()
    for (const [ids, acts] of [
      [living, LIFE],
      [erased, [ERASED]],
    ] as const)
      for (const [act, perform] of acts) {
        const asked: string[] = []
        store.clock.advance(1_000n)
        await inOffice(store.db, store.clock, 'test', async (work) => {
          const cases = await lockLettersOf(work.tx, ids)
          expect(cases.size).toBe(letters)
          await perform(noting(work, asked), [...cases.values()])
        })
        counts.set(act, asked.length)
      }
    return counts
  }

  it('are as many for 500 letters as for one, but for what SQLite runs for each', async () => {
    // Series of history are made once.
    await counted(1)
    const one = await counted(1)
    for (const letters of [10, 500])
      for (const [act, statements] of await counted(letters)) {
        const expected = (one.get(act) ?? 0) + (letters - 1) * eachCosts(act, kind.name)
        expect({ act, letters, statements }).toEqual({ act, letters, statements: expected })
      }
    expect(one.size).toBe(12)
    expect(Math.max(...one.values())).toBeLessThanOrEqual(5)
  })
})

describe.each(stores)('an act on $name is counted', (kind) => {
  let store: LetterStore
  beforeEach(async () => {
    store = await LetterStore.open(kind)
  })
  afterEach(() => store.close())

  const NOTHING: Outcomes = { confirmed: 0, returned: 0 }
  /** What was ever done to letters, and what became of those of the redrive. */
  const counts = () =>
    store.db.session('test', async (session) => {
      const accounts = await readPlaceCounts(session)
      const sumOf = (name: ActivityName) => accounts.reduce((sum, { ever }) => sum + ever[name], 0)
      const activity = Object.fromEntries(ACTIVITY_NAMES.map((name) => [name, sumOf(name)]))
      return { activity, outcomes: (await outcomesOf(session, [REDRIVE.number])).get(7) ?? NOTHING }
    })
  const doing = async (id: LetterId, act: TransitionName, perform: Doing) => {
    const { activity, outcomes } = await counts()
    store.clock.advance(1_000n)
    const before = await inOffice(store.db, store.clock, 'test', async (work) => {
      const [letter] = [...(await lockLettersOf(work.tx, [id])).values()]
      if (letter === undefined) throw new Error(`there is no letter ${id}`)
      await perform(work, [letter])
      return letter
    })
    const words = transitionOf(act)
    // A failure of a letter that nobody had sent back brings nothing back.
    const isTold = act !== 'reopen' || before.resolution === 'retry'
    const told = isTold && words.activity !== undefined ? { [words.activity]: 1 } : {}
    const ended: Partial<Outcomes> =
      isTold && words.outcome !== undefined && before.redrive !== null ? { [words.outcome]: 1 } : {}
    // It was completed, and then failed all the same.
    const undone = act === 'reopen' && before.confirmedAt !== null ? { confirmed: -1 } : {}
    expect({ act, ...(await counts()) }).toEqual({
      act,
      activity: summed(activity, told),
      outcomes: summed(summed({ ...outcomes }, ended), undone),
    })
  }

  it('as the table says, over time and for the redrive that sent the letter', async () => {
    const [letter, erased] = [await store.capture(), await store.capture()]
    expect((await counts()).activity).toMatchObject({ arrived: 2 })
    const acts = new Map(LIFE)
    // It comes back without a word between.
    for (const act of ['retry', 'reopen'] as const) await doing(letter, act, acts.get(act) ?? failing)
    expect((await counts()).outcomes).toEqual({ confirmed: 0, returned: 1 })
    for (const [act, perform] of LIFE) await doing(letter, act, perform)
    expect((await counts()).outcomes).toEqual({ confirmed: 0, returned: 2 })
    await doing(erased, ...ERASED)
  })
})

/** Each number with what is added to it. */
const summed = (
  numbers: Readonly<Record<string, number>>,
  added: Readonly<Partial<Record<string, number>>>,
): Record<string, number> =>
  Object.fromEntries(Object.entries(numbers).map(([name, number]) => [name, number + (added[name] ?? 0)]))
