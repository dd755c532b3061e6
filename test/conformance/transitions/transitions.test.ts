/**
 * The table of transitions, walked for every source on both stores: each act is done through the office, and what it set, emptied and
 * left alone, what it is counted as, what history calls it and what it is refused from is what the table says. `verify` finds nothing
 * after any of them. What a source does not have is skipped, and says why.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { historyOfLetter } from '../../../src/history/get.ts'
import { POSITION_COLUMNS } from '../../../src/letters/in-dead-queue/read.ts'
import { type Letter, type LetterStatus, STATUS } from '../../../src/letters/letter.ts'
import { readLetterById } from '../../../src/letters/lists/detail.ts'
import { ACTIVITY_NAMES, type ActivityName } from '../../../src/letters/numbers/shapes.ts'
import { readPlaceCounts } from '../../../src/letters/numbers/summary.ts'
import { forgoRedrive, isRefused, NO_EDITS } from '../../../src/letters/source.ts'
import {
  type StateColumn,
  type TransitionName,
  transitionOf,
  wordOf,
} from '../../../src/letters/transitions.ts'
import { inOffice } from '../../../src/letters/work.ts'
import { kafkaLetterSource } from '../../../src/sources/kafka/source.ts'
import { type Database, sql } from '../../../src/store/database.ts'
import { AWAY, Desk } from '../../world/kafka/return.ts'
import { retain } from '../../world/retain.ts'
import { stores } from '../../world/stores.ts'
import { violationsIn } from '../../world/verified.ts'
import { DEATHS, type DeathDesk, type Doomed, hookOf, lettersIn } from '../deaths/desks.ts'

const PLAIN_COLUMNS = [
  'resolution',
  'resolved_at',
  'resolved_by',
  'notes',
  'confirmed_at',
  'expired_at',
  'sent_as',
  'sent_to',
  'redrive',
] as const
const PLACES = Object.keys(POSITION_COLUMNS)

const readState = sql(
  'test.stateOfLetter',
  `SELECT status, version, drawer, ${[...PLAIN_COLUMNS, ...PLACES].join(', ')} FROM bartleby.letters WHERE id = $1`,
  { bigints: true },
)
type State = Readonly<Record<string, string | number | null>>

const DAY_US = 86_400_000_000n
const SENT = { edit: null, notes: null, actor: 'nell' } as const
/** The status that is asked for, by act; a retry is asked for by itself. */
const ASKED = { retry: null, discard: 'Resolved', expire: 'Expired', restore: 'Pending' } as const

/** What the table is walked on. */
interface Walked {
  readonly db: Database
  readonly clock: Clock & { advance(us: bigint): void }
}

async function stateOf({ db }: Walked, { id }: Pick<Letter, 'id'>): Promise<State> {
  const [state] = await db.session('test', (session) =>
    session.rows<Record<string, string | number | bigint | null>>(readState, id),
  )
  if (state === undefined) throw new Error(`there is no letter ${id}`)
  return Object.fromEntries(
    Object.entries(state).map(([column, value]) => [
      column,
      typeof value === 'bigint' ? Number(value) : value,
    ]),
  )
}

async function newest({ db }: Walked, { id }: Pick<Letter, 'id'>) {
  const [row] = await db.session('test', (session) => historyOfLetter(session, id, 1))
  return row
}

/** How often each was ever done, by all letters. */
async function activityIn({ db }: Walked): Promise<Readonly<Record<ActivityName, number>>> {
  const accounts = await db.session('test', (session) => readPlaceCounts(session))
  const sumOf = (name: ActivityName) => accounts.reduce((sum, { ever }) => sum + ever[name], 0)
  // All names are there.
  return Object.fromEntries(ACTIVITY_NAMES.map((name) => [name, sumOf(name)])) as Record<ActivityName, number>
}

const onceMore = (activity: Readonly<Record<ActivityName, number>>, name: ActivityName | undefined) =>
  name === undefined ? activity : { ...activity, [name]: activity[name] + 1 }

/** Does an act, and compares what it did with the table. `beside` are columns that others write meanwhile. */
async function doing<T>(
  desk: Walked,
  act: TransitionName,
  letter: Letter,
  perform: () => Promise<T>,
  beside: readonly string[] = [],
): Promise<T> {
  const [before, row, counted] = [
    await stateOf(desk, letter),
    await newest(desk, letter),
    await activityIn(desk),
  ]
  desk.clock.advance(1_000n)
  const done = await perform()
  const after = await stateOf(desk, letter)
  const { from, to, sets, resets, activity } = transitionOf(act)
  const word = wordOf(act, letter.engine)
  expect(from.map((status) => STATUS[status])).toContain(before.status)
  expect(after.version).toBe(Number(before.version) + (word === null ? 0 : 1))
  expect(after.status).toBe(to === null || to === 'removed' ? before.status : STATUS[to])
  const of = (column: StateColumn): readonly string[] => (column === 'position' ? PLACES : [column])
  const empty = Object.fromEntries(PLAIN_COLUMNS.map((column) => [column, null]))
  const none = Object.fromEntries(
    Object.entries(POSITION_COLUMNS).map(([column, value]) => [
      column,
      value === 'NULL' ? null : Number(value),
    ]),
  )
  for (const column of resets.flatMap(of))
    expect({ [column]: after[column] }).toEqual({ [column]: { ...empty, ...none }[column] })
  // Its source lays a letter before it is restored.
  const laid: readonly StateColumn[] = act === 'restore' ? ['position'] : []
  const touched = new Set<string>([...[...sets, ...resets, ...laid].flatMap(of), ...beside])
  for (const column of [...PLAIN_COLUMNS, ...PLACES, 'drawer'])
    if (!touched.has(column)) expect({ [column]: after[column] }).toEqual({ [column]: before[column] })
  if (sets.includes('resolution')) expect(after.resolution).toBe(act)
  // What a consumer completes in a dead queue was not sent by anybody.
  const sent = act === 'complete' ? [] : (['sent_as', 'sent_to'] as const)
  for (const column of ['resolved_at', 'expired_at', 'confirmed_at', ...sent] as const)
    if (sets.includes(column)) expect({ [column]: after[column] }).not.toEqual({ [column]: null })
  if (word === null) expect(await newest(desk, letter)).toEqual(row)
  else {
    // A report about a letter that is pending is one more capture of it (decision 33).
    const isCapture = act === 'reopen' && letter.source === 'http' && before.status === STATUS.Pending
    const operation = isCapture ? 'capture' : word
    expect(await newest(desk, letter)).toMatchObject({ operation, status: 'Succeeded' })
  }
  // A failure of a letter that nobody had sent back brings nothing back.
  const isTold = act !== 'reopen' || before.resolution === 'retry'
  expect(await activityIn(desk)).toEqual(onceMore(counted, isTold ? activity : undefined))
  return done
}

async function expectClean({ db, clock }: Walked): Promise<void> {
  expect(await violationsIn(db, { clock })).toEqual([])
}

describe.each(stores.flatMap((kind) => DEATHS.map((death) => ({ ...death, kind, store: kind.name }))))(
  'letters of $of on $store',
  ({ open, kind, lacks }) => {
    let desk: DeathDesk
    beforeAll(async () => {
      desk = await open(kind)
    })
    afterAll(() => desk?.close())
    afterEach(() => expectClean(desk))

    const again = async ({ id }: Pick<Letter, 'id'>): Promise<Letter> => {
      const letter = await desk.db.session('test', (session) => readLetterById(session, id))
      if (letter === null) throw new Error(`there is no letter ${id}`)
      return letter
    }
    const dead = async (): Promise<Letter> => {
      const before = new Set((await lettersIn(desk.db)).map(({ id }) => id))
      await (await desk.doomed()).die()
      desk.clock.advance(1_000n)
      const letter = (await lettersIn(desk.db)).find(({ id }) => !before.has(id))
      if (letter === undefined) throw new Error('nothing died')
      return letter
    }
    const changed = (letter: Letter, status: LetterStatus, notes: string | null = 'because') =>
      desk.letters.change(letter, { status, notes, actor: 'nell' })
    /** Nothing that was done before is pending any more. */
    const endOthers = async (): Promise<void> => {
      for (const old of await lettersIn(desk.db)) if (old.status === 'Pending') await changed(old, 'Expired')
    }
    const refused = async (letter: Letter, acts: readonly (keyof typeof ASKED)[]): Promise<void> => {
      const before = await stateOf(desk, letter)
      for (const act of acts) {
        const status = ASKED[act]
        const asked = status === null ? desk.letters.retry(letter, SENT) : changed(letter, status)
        // Without Kafka, its letters are refused before anybody looks at them.
        const isAway = letter.source === 'kafka' && act === 'retry'
        const code = isAway ? 'kafka_not_enabled' : 'letter_status_wrong'
        await expect(asked, act).rejects.toMatchObject({ code })
      }
      expect(await stateOf(desk, letter)).toEqual(before)
    }

    it('are captured pending, with nothing of an end, and cannot be restored', async () => {
      const counted = await activityIn(desk)
      const letter = await dead()
      const { activity, resets } = transitionOf('capture')
      expect(await activityIn(desk)).toEqual(onceMore(counted, activity))
      const state = await stateOf(desk, letter)
      for (const column of resets) expect({ [column]: state[column] }).toEqual({ [column]: null })
      expect(state).toMatchObject({ status: STATUS.Pending, version: 1 })
      expect((await newest(desk, letter))?.operation).toBe(wordOf('capture', letter.engine))
      await refused(letter, ['restore'])
    })

    it.each(['discard', 'expire'] as const)('can be ended by the act %s, and restored', async (act) => {
      const letter = await dead()
      await doing(desk, act, letter, () => changed(letter, ASKED[act]))
      await refused(letter, ['retry', 'discard', 'expire'])
      await doing(desk, 'restore', letter, () => changed(letter, 'Pending'))
      await refused(letter, ['restore'])
    })

    it('can be ended with all that are old', async () => {
      await endOthers()
      const letter = await dead()
      desk.clock.advance(2n * DAY_US)
      await doing(desk, 'expire', letter, () =>
        desk.letters.expireOlder({ olderThanDays: 1, engine: letter.engine, actor: 'nell' }),
      )
      await refused(letter, ['retry', 'discard', 'expire'])
    })

    it('are sent back, reopen when that dies, and forget their retry when they are ended after that', async () => {
      const letter = await dead()
      let doomed: Doomed | undefined
      await doing(desk, 'retry', letter, async () => {
        doomed = await desk.sentBack(letter)
      })
      await refused(letter, ['retry', 'discard', 'expire'])
      const sent = await stateOf(desk, letter)
      await doing(desk, 'reopen', letter, async () => doomed?.die())
      const reopened = await stateOf(desk, letter)
      expect(reopened).toMatchObject({ sent_as: sent.sent_as, sent_to: sent.sent_to })
      await refused(letter, ['restore'])
      await doing(desk, 'discard', letter, () => changed(letter, 'Resolved'))
      expect(await again(letter)).toMatchObject({ sentAs: null, sentTo: null, redrive: null })
    })

    it.for(['Pending', 'Resolved', 'Expired'] as const)(
      'reopen from %s when what they stand for dies once more',
      async (status, { skip }) => {
        if (lacks.givenUp !== undefined) skip(lacks.givenUp)
        const letter = await dead()
        const doomed = await hookOf(desk, 'givenUp').call(desk, letter, status)
        expect((await again(letter)).status).toBe(status)
        await doing(desk, 'reopen', letter, () => doomed.die())
      },
    )

    it('are confirmed when what was sent is done', async ({ skip }) => {
      if (lacks.confirmed !== undefined) skip(lacks.confirmed)
      const letter = await dead()
      await doing(desk, 'retry', letter, () => desk.letters.retry(letter, SENT))
      await doing(desk, 'confirm', letter, () => hookOf(desk, 'confirmed').call(desk, letter))
      await refused(letter, ['retry', 'discard', 'expire'])
    })

    it('are completed by what is done about them, and restored', async ({ skip }) => {
      if (lacks.completed !== undefined) skip(lacks.completed)
      await endOthers()
      const letter = await dead()
      const complete = await hookOf(desk, 'completed').call(desk, letter)
      await doing(desk, 'complete', letter, complete)
      const { sent_as } = await stateOf(desk, letter)
      // The message of an outbox was sent, although nobody knew it.
      expect(sent_as !== null).toBe(letter.source === 'outbox')
      await refused(letter, ['retry', 'discard', 'expire'])
      await doing(desk, 'restore', letter, () => changed(letter, 'Pending'))
    })

    it('are filed anew when they turn out to come from another queue', async ({ skip }) => {
      if (lacks.refiled !== undefined) skip(lacks.refiled)
      const letter = await dead()
      await doing(desk, 'refile', letter, () => hookOf(desk, 'refiled').call(desk, letter))
      expect((await stateOf(desk, letter)).drawer).not.toBe(letter.drawer)
    })

    it('are erased by the users of their source, and only while they are pending', async ({ skip }) => {
      if (lacks.erased !== undefined) skip(lacks.erased)
      const erased = hookOf(desk, 'erased')
      const [letter, ended] = [await dead(), await dead()]
      await changed(ended, 'Resolved')
      const counted = await activityIn(desk)
      await expect(erased.call(desk, ended)).rejects.toThrow()
      await erased.call(desk, letter)
      const left = (await lettersIn(desk.db)).map(({ id }) => id)
      expect(left).not.toContain(letter.id)
      expect(left).toContain(ended.id)
      expect(await activityIn(desk)).toEqual(onceMore(counted, transitionOf('erase').activity))
    })

    it('are removed when their time is over, and only if they are resolved or expired', async () => {
      const [resolved, expired, pending] = [await dead(), await dead(), await dead()]
      await changed(resolved, 'Resolved')
      await changed(expired, 'Expired')
      desk.clock.advance(200n * DAY_US)
      const counted = await activityIn(desk)
      await retain(desk, { retentionDays: 90, sources: [kafkaLetterSource({ returnWay: () => null })] })
      const left = (await lettersIn(desk.db)).map(({ id }) => id)
      expect(left).not.toContain(resolved.id)
      expect(left).not.toContain(expired.id)
      expect(left).toContain(pending.id)
      expect(await activityIn(desk)).toEqual(onceMore(counted, transitionOf('remove').activity))
    })
  },
)

describe.each(stores)('letters that leave over a network, on $name,', (kind) => {
  it('say for which redrive before they do, and forget it when they did not', async () => {
    const desk = await Desk.open(kind)
    try {
      const letter = await desk.letter(await desk.deadOf(desk.service()))
      const source = kafkaLetterSource({ returnWay: () => desk })
      const redrive = { number: 7, id: 'a-redrive', recipe: null }
      const { begun, release } = desk.publisher.hold()
      const sending = { notes: null, actor: 'nell', redrive }
      let leaving: ReturnType<NonNullable<typeof source.sendOutside>> | undefined
      const leave = async () => {
        leaving = source.sendOutside?.([letter], NO_EDITS, sending)
        await begun
      }
      // Who sends it holds it.
      await doing(desk, 'intend', letter, leave, ['leased'])
      expect((await stateOf(desk, letter)).redrive).toBe(7)
      release(AWAY)
      expect((await leaving)?.map(isRefused)).toEqual([true])
      await doing(desk, 'forgo', letter, () =>
        inOffice(desk.db, desk.clock, 'test.unsent', (work) =>
          forgoRedrive(work, letter.id, letter.version, redrive),
        ),
      )
      await expectClean(desk)
    } finally {
      await desk.close()
    }
  })
})
