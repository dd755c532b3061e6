/**
 * The table of transitions, walked for every source on both stores: each act is done through the office, and what it set, emptied and
 * left alone, what history calls it and what it is refused from is what the table says. `verify` finds nothing after any of them.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../../../src/db/database.ts'
import { historyOfLetter } from '../../../src/history/of-letter.ts'
import { kafkaLetterSource } from '../../../src/kafka/source.ts'
import { readLetterById } from '../../../src/letters/detail.ts'
import { type Letter, type LetterStatus, STATUS } from '../../../src/letters/letter.ts'
import { PLACE_COLUMNS } from '../../../src/letters/lying/place.ts'
import {
  type StateColumn,
  type TransitionName,
  transitionOf,
  wordOf,
} from '../../../src/letters/transitions.ts'
import { verifyStore } from '../../../src/verify/verify.ts'
import { retain } from '../../harness/retain.ts'
import { stores } from '../../harness/stores.ts'
import { DEATHS, type DeathDesk, type Doomed, lettersIn } from '../deaths/desks.ts'

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
const PLACES = Object.keys(PLACE_COLUMNS)

const readState = sql(
  'test.stateOfLetter',
  `SELECT status, version, drawer, ${[...PLAIN_COLUMNS, ...PLACES].join(', ')} FROM bartleby.letters WHERE id = $1`,
  { bigints: true },
)
type State = Readonly<Record<string, string | number | null>>

const DAY_US = 86_400_000_000n
/** The status that is asked for, by act; a retry is asked for by itself. */
const ASKED = { retry: null, discard: 'Resolved', expire: 'Expired', restore: 'Pending' } as const

describe.each(stores.flatMap((kind) => DEATHS.map((death) => ({ ...death, kind, store: kind.name }))))(
  'letters of $of on $store',
  ({ open, kind }) => {
    let desk: DeathDesk
    beforeAll(async () => {
      desk = await open(kind)
    })
    afterAll(() => desk?.close())
    afterEach(async () => {
      const { invariants } = await verifyStore(desk.db, { clock: desk.clock })
      expect(invariants.flatMap(({ violations }) => violations)).toEqual([])
    })

    const again = async ({ id }: Pick<Letter, 'id'>): Promise<Letter> => {
      const letter = await desk.db.session('test', (session) => readLetterById(session, id))
      if (letter === null) throw new Error(`there is no letter ${id}`)
      return letter
    }
    const stateOf = async ({ id }: Pick<Letter, 'id'>): Promise<State> => {
      const [state] = await desk.db.session('test', (session) =>
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
    const newest = async ({ id }: Letter) => {
      const [row] = await desk.db.session('test', (session) => historyOfLetter(session, id, 1))
      return row
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

    /** Does an act, and compares what it did with the table. */
    const doing = async <T>(act: TransitionName, letter: Letter, perform: () => Promise<T>): Promise<T> => {
      const before = await stateOf(letter)
      desk.clock.advance(1_000n)
      const done = await perform()
      const after = await stateOf(letter)
      const { to, sets, resets } = transitionOf(act)
      expect(after.version).toBe(Number(before.version) + 1)
      expect(after.status).toBe(to === null || to === 'removed' ? before.status : STATUS[to])
      const of = (column: StateColumn): readonly string[] => (column === 'place' ? PLACES : [column])
      const empty = Object.fromEntries(PLAIN_COLUMNS.map((column) => [column, null]))
      const none = Object.fromEntries(
        Object.entries(PLACE_COLUMNS).map(([column, value]) => [
          column,
          value === 'NULL' ? null : Number(value),
        ]),
      )
      for (const column of resets.flatMap(of))
        expect({ [column]: after[column] }).toEqual({ [column]: { ...empty, ...none }[column] })
      // Its source lays a letter before it is restored.
      const laid: readonly StateColumn[] = act === 'restore' ? ['place'] : []
      const touched = new Set<string>([...sets, ...resets, ...laid].flatMap(of))
      for (const column of [...PLAIN_COLUMNS, ...PLACES])
        if (!touched.has(column)) expect({ [column]: after[column] }).toEqual({ [column]: before[column] })
      if (touched.has('resolution') && sets.includes('resolution')) expect(after.resolution).toBe(act)
      // What a consumer completes in a dead queue was not sent by anybody.
      const sent = act === 'complete' ? [] : (['sent_as', 'sent_to'] as const)
      for (const column of ['resolved_at', 'expired_at', ...sent] as const)
        if (sets.includes(column)) expect({ [column]: after[column] }).not.toEqual({ [column]: null })
      const row = await newest(letter)
      expect(row).toMatchObject({ operation: wordOf(act, letter.engine), status: 'Succeeded' })
      return done
    }
    const refused = async (letter: Letter, acts: readonly (keyof typeof ASKED)[]): Promise<void> => {
      const before = await stateOf(letter)
      for (const act of acts) {
        const status = ASKED[act]
        const asked =
          status === null
            ? desk.letters.retry(letter, { edit: null, notes: null, actor: 'nell' })
            : changed(letter, status)
        // Without Kafka, its letters are refused before anybody looks at them.
        const isAway = letter.source === 'kafka' && act === 'retry'
        const code = isAway ? 'kafka_not_enabled' : 'letter_status_wrong'
        await expect(asked, act).rejects.toMatchObject({ code })
      }
      expect(await stateOf(letter)).toEqual(before)
    }

    it('are captured pending, with nothing of an end, and cannot be restored', async () => {
      const letter = await dead()
      const state = await stateOf(letter)
      for (const column of transitionOf('capture').resets)
        expect({ [column]: state[column] }).toEqual({ [column]: null })
      expect(state).toMatchObject({ status: STATUS.Pending, version: 1 })
      expect((await newest(letter))?.operation).toBe(wordOf('capture', letter.engine))
      await refused(letter, ['restore'])
    })

    it.each(['discard', 'expire'] as const)('can be ended by the act %s, and restored', async (act) => {
      const letter = await dead()
      await doing(act, letter, () => changed(letter, ASKED[act]))
      await refused(letter, ['retry', 'discard', 'expire'])
      await doing('restore', letter, () => changed(letter, 'Pending'))
      await refused(letter, ['restore'])
    })

    it('can be ended with all that are old', async () => {
      const letter = await dead()
      desk.clock.advance(2n * DAY_US)
      await doing('expire', letter, () =>
        desk.letters.expireOlder({ olderThanDays: 1, engine: letter.engine, actor: 'nell' }),
      )
      await refused(letter, ['retry', 'discard', 'expire'])
    })

    it('are sent back, reopen when that dies, and forget their retry when they are ended after that', async () => {
      const letter = await dead()
      let doomed: Doomed | undefined
      await doing('retry', letter, async () => {
        doomed = await desk.sentBack(letter)
      })
      await refused(letter, ['retry', 'discard', 'expire'])
      const sent = await stateOf(letter)
      await doing('reopen', letter, async () => doomed?.die())
      const reopened = await stateOf(letter)
      expect(reopened).toMatchObject({ sent_as: sent.sent_as, sent_to: sent.sent_to })
      await refused(letter, ['restore'])
      await doing('discard', letter, () => changed(letter, 'Resolved'))
      expect(await again(letter)).toMatchObject({ sentAs: null, sentTo: null, redrive: null })
    })

    it('are confirmed when what was sent is done, where anybody tells of that', async () => {
      const { confirmed } = desk
      if (confirmed === undefined) return
      const letter = await dead()
      const before = await stateOf(letter)
      await confirmed.call(desk, letter)
      const after = await stateOf(letter)
      // A retry and a confirmation.
      expect(after).toMatchObject({
        version: Number(before.version) + 2,
        status: STATUS.Resolved,
        resolution: 'retry',
      })
      expect(after.confirmed_at).not.toBe(null)
      expect(await newest(letter)).toMatchObject({ operation: 'confirm', status: 'Succeeded' })
      await refused(letter, ['retry', 'discard', 'expire'])
    })

    it('are completed by consumers of their dead queue', async () => {
      const { completed } = desk
      if (completed === undefined) return
      for (const old of await lettersIn(desk.db)) if (old.status === 'Pending') await changed(old, 'Expired')
      const letter = await dead()
      await doing('complete', letter, () => completed.call(desk, letter))
      await refused(letter, ['retry', 'discard', 'expire'])
      await doing('restore', letter, () => changed(letter, 'Pending'))
    })

    it('are filed anew when they turn out to come from another queue', async () => {
      const { refiled } = desk
      if (refiled === undefined) return
      const letter = await dead()
      await doing('refile', letter, () => refiled.call(desk, letter))
      expect((await stateOf(letter)).drawer).not.toBe(letter.drawer)
    })

    it('are erased by the users of their source, and only while they are pending', async () => {
      const { erased } = desk
      if (erased === undefined) return
      const [letter, ended] = [await dead(), await dead()]
      await changed(ended, 'Resolved')
      await expect(erased.call(desk, ended)).rejects.toThrow()
      await erased.call(desk, letter)
      const left = (await lettersIn(desk.db)).map(({ id }) => id)
      expect(left).not.toContain(letter.id)
      expect(left).toContain(ended.id)
    })

    it('are removed when their time is over, and only if they are ended', async () => {
      const [ended, pending] = [await dead(), await dead()]
      await changed(ended, 'Resolved')
      desk.clock.advance(200n * DAY_US)
      await retain(desk, { retentionDays: 90, sources: [kafkaLetterSource({ returnWay: () => null })] })
      const left = (await lettersIn(desk.db)).map(({ id }) => id)
      expect(left).not.toContain(ended.id)
      expect(left).toContain(pending.id)
    })
  },
)
