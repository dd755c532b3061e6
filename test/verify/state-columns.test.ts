/**
 * The table of transitions, broken by hand: for each end of a letter every column that it empties is filled, and every column that it
 * always fills is emptied. I3 names exactly these.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { POSITION_COLUMNS } from '../../src/letters/in-dead-queue/read.ts'
import { STATUS } from '../../src/letters/letter.ts'
import { TRANSITIONS, type TransitionName, transitionOf } from '../../src/letters/transitions.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { verifyAt } from '../world/verified.ts'
import { copyOf, type Fates, fillStore } from './busy-store.ts'
import { tamper } from './tampering.ts'

/** Something for each column that may be filled. Numbers are none that anything else has. */
const FILLED: Readonly<Record<string, string>> = {
  resolved_at: '77',
  resolved_by: `'somebody'`,
  notes: `'a note'`,
  confirmed_at: '77',
  expired_at: '77',
  sent_as: `'an-item'`,
  sent_to: `'orders'`,
  redrive: '77',
  shelf: '0',
  serial: '7777777',
  laid_at: '77',
  leased: '1',
  lease_deadline: '77',
  leased_by: `'somebody'`,
  enqueue_at: '77',
  attempts: '7',
}

interface Breakage {
  readonly title: string
  readonly letter: keyof Fates
  /** What is written into which column. */
  readonly written: Readonly<Record<string, string>>
  /** The columns that do not fit then, where those are others too. */
  readonly odd?: readonly string[]
}

const filling = (columns: readonly string[]) =>
  Object.fromEntries(columns.map((column) => [column, FILLED[column] ?? 'unknown']))
const emptying = (columns: readonly string[]) => Object.fromEntries(columns.map((column) => [column, 'NULL']))

/** Columns that an act fills for every letter. What a consumer completes in a dead queue was not sent by anybody. */
const alwaysSet = (act: TransitionName): readonly string[] => {
  const always = act === 'complete' ? ['resolved_at'] : ['resolved_at', 'expired_at', 'sent_as', 'sent_to']
  return transitionOf(act).sets.filter((column) => always.includes(column))
}
/** Columns that an act empties for good: a retry may be confirmed later. Where letters lie is a case of its own. */
const emptied = (act: TransitionName): readonly string[] =>
  transitionOf(act).resets.filter(
    (column) => column !== 'position' && !(act === 'retry' && column === 'confirmed_at'),
  )

const ENDS = { retry: 'sent', discard: 'discarded', complete: 'completed', expire: 'expired' } as const
const OPENINGS = ['capture', 'reopen', 'restore'] as const
const PLACE = Object.keys(POSITION_COLUMNS).filter((column) => column !== 'part')

const BREAKAGES: readonly Breakage[] = [
  {
    title: 'is pending and says how it ended',
    letter: 'lying',
    written: filling(
      emptied('capture').filter(
        (column) =>
          column !== 'resolution' && OPENINGS.every((act) => emptied(act).some((each) => each === column)),
      ),
    ),
  },
  {
    title: 'is pending and names what resolved it',
    letter: 'lying',
    written: { resolution: `'discard'` },
    odd: ['resolution', 'resolved_at', 'status'],
  },
  { title: 'is resolved by nothing', letter: 'discarded', written: { resolution: 'NULL' } },
  ...(['retry', 'discard', 'complete', 'expire'] as const).flatMap((act): Breakage[] => [
    {
      title: `was ended by the act ${act} and says what that empties`,
      letter: ENDS[act],
      written: filling(emptied(act)),
    },
    {
      title: `was ended by the act ${act} and lacks what that fills`,
      letter: ENDS[act],
      written: emptying(alwaysSet(act)),
    },
    {
      title: `was ended by the act ${act} and has another status`,
      letter: ENDS[act],
      written: { status: String(act === 'expire' ? STATUS.Resolved : STATUS.Expired) },
    },
  ]),
  {
    title: 'was completed in its dead queue and says what an earlier retry made',
    letter: 'completed',
    written: filling(['sent_as', 'sent_to']),
  },
  { title: 'lies nowhere and has a place', letter: 'discarded', written: filling(PLACE) },
  {
    title: 'lies in a dead queue and has no place there',
    letter: 'lying',
    written: emptying(['shelf', 'serial', 'laid_at']),
  },
]

it('breaks every column that any act empties', () => {
  const resets = new Set(
    Object.values(TRANSITIONS)
      .flatMap((transition): readonly string[] => transition.resets)
      .flatMap((column) => (column === 'position' ? PLACE : [column])),
  )
  const broken = new Set(BREAKAGES.flatMap(({ written }) => Object.keys(written)))
  expect([...resets].filter((column) => !broken.has(column))).toEqual([])
})

describe.each(stores)('a letter on $name that', (store) => {
  let place: FreshStore
  let fates: Fates
  beforeAll(async () => {
    place = await store.fresh()
    fates = await fillStore(place.url)
  })
  afterAll(() => place?.dispose())

  it.each(BREAKAGES)('$title', async ({ letter, written, odd = Object.keys(written) }) => {
    const copy = await copyOf(place)
    try {
      const values = Object.entries(written).map(([column, value]) => `${column} = ${value}`)
      expect(values).not.toEqual([])
      await tamper(copy.url, `UPDATE bartleby.letters SET ${values.join(', ')} WHERE id = ${fates[letter]}`)
      const { invariants } = await verifyAt(copy.url)
      const found = invariants.find(({ invariant }) => invariant === 'I3')?.violations ?? []
      expect(found.map(({ row }) => ({ letter: row.letter, odd: columnsOf(row) }))).toEqual([
        { letter: String(fates[letter]), odd: odd.toSorted() },
      ])
    } finally {
      await copy.dispose()
    }
  })
})

const columnsOf = (row: Readonly<Record<string, unknown>>): readonly string[] =>
  String(row.columns).split(', ').toSorted()
