/** What every source promises about what dies in it: one letter for each, in one piece, whoever else is at it. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { historyOfLetter } from '../../../src/history/get.ts'
import type { Letter } from '../../../src/letters/letter.ts'
import { readFailures } from '../../../src/letters/lists/detail.ts'
import { LetterChanges } from '../../../src/letters/numbers/counts.ts'
import { stores } from '../../world/stores.ts'
import { violationsIn } from '../../world/verified.ts'
import { DEATHS, type DeathDesk, type Doomed, hookOf, lettersIn } from './desks.ts'

describe.each(stores.flatMap((kind) => DEATHS.map((death) => ({ ...death, kind, store: kind.name }))))(
  'what dies in $of on $store',
  ({ open, kind, lacks }) => {
    let desk: DeathDesk
    let before: readonly Letter[] = []
    beforeAll(async () => {
      desk = await open(kind)
    })
    afterAll(() => desk?.close())
    afterEach(async () => {
      vi.restoreAllMocks()
      expect(await violationsIn(desk.db, { clock: desk.clock })).toEqual([])
      before = await lettersIn(desk.db)
    })

    /** The letters that there were not before. */
    const newLetters = async (): Promise<Letter[]> => {
      const old = new Set(before.map(({ id }) => id))
      return (await lettersIn(desk.db)).filter(({ id }) => !old.has(id))
    }
    const onlyLetter = async (): Promise<Letter> => {
      const [letter, ...others] = await newLetters()
      if (letter === undefined || others.length > 0) throw new Error(`${others.length + 1} letters, not one`)
      return letter
    }
    /** Errors of Kafka's records are values of headers, and those are not in history. */
    const told = ({ source, errorMessage }: Letter) => (source === 'kafka' ? null : errorMessage)
    const acts = async ({ id }: Letter): Promise<{ operation: string; error: string | null }[]> => {
      const rows = await desk.db.session('test', (session) => historyOfLetter(session, id, 20))
      return rows.map(({ operation, error }) => ({ operation, error })).reverse()
    }
    const failuresOf = (letter: Letter) => desk.db.session('test', (session) => readFailures(session, letter))
    const dead = async (): Promise<Letter> => {
      await (await desk.doomed()).die()
      desk.clock.advance(1_000n)
      return onlyLetter()
    }
    /** The office goes down just before it would commit. */
    const killedOnce = () => {
      const killed = vi.spyOn(LetterChanges.prototype, 'write').mockImplementationOnce(() => {
        throw new Error('killed')
      })
      return killed
    }

    it('has a letter, which is pending in its first version and says what it died of', async () => {
      const letter = await dead()
      expect(letter).toMatchObject({ status: 'Pending', version: 1, resolution: null, sentAs: null })
      expect(letter.firstFailureAt).toBe(letter.lastFailureAt)
      expect(await failuresOf(letter)).toHaveLength(1)
      expect(await acts(letter)).toEqual([{ operation: expect.any(String), error: told(letter) }])
    })

    it('reopens the letter that it was sent back from', async () => {
      const letter = await dead()
      await (await desk.sentBack(letter)).die()
      const again = await onlyLetter()
      expect(again).toMatchObject({
        id: letter.id,
        status: 'Pending',
        version: 3,
        resolution: null,
        resolvedAt: null,
        originalQueue: letter.originalQueue,
        rowKey: letter.rowKey,
      })
      expect(again.dequeueCount).toBeGreaterThan(letter.dequeueCount)
      expect(await failuresOf(again)).toHaveLength(2)
      expect((await acts(again)).map(({ error }) => error)).toEqual([told(letter), null, told(again)])
    })

    it('reopens it as often as it dies', async () => {
      const letter = await dead()
      for (let round = 1; round <= 3; round++) {
        await (await desk.sentBack(await onlyLetter())).die()
        desk.clock.advance(1_000n)
        expect(await onlyLetter()).toMatchObject({ id: letter.id, status: 'Pending', version: 1 + 2 * round })
      }
      expect(await failuresOf(await onlyLetter())).toHaveLength(4)
    })

    it.for(['Pending', 'Resolved', 'Expired'] as const)(
      'reopens it although it is %s meanwhile',
      async (status, { skip }) => {
        if (lacks.givenUp !== undefined) skip(lacks.givenUp)
        const letter = await dead()
        await (await hookOf(desk, 'givenUp').call(desk, letter, status)).die()
        expect(await onlyLetter()).toMatchObject({
          id: letter.id,
          status: 'Pending',
          resolution: null,
          resolvedAt: null,
          notes: null,
        })
      },
    )

    const atOnce = (doomed: Doomed) =>
      Promise.allSettled([doomed.die(), doomed.dieElsewhere(), doomed.die(), doomed.dieElsewhere()])

    it('has one letter when two servers see it die at once', async () => {
      await atOnce(await desk.doomed())
      const letter = await onlyLetter()
      expect(letter).toMatchObject({ status: 'Pending', version: 1 })
      expect(await acts(letter)).toHaveLength(1)
    })

    it('reopens its letter once when two servers see it die at once', async () => {
      const letter = await dead()
      await atOnce(await desk.sentBack(letter))
      const again = await onlyLetter()
      expect(again).toMatchObject({ id: letter.id, status: 'Pending', version: 3 })
      expect(await failuresOf(again)).toHaveLength(2)
    })

    it('is alive without a trace when the office goes down before the commit, and dies later', async () => {
      const doomed = await desk.doomed()
      expect(await doomed.isAlive()).toBe(true)
      const killed = killedOnce()
      await Promise.allSettled([doomed.die()])
      expect(killed).toHaveBeenCalled()
      if ((await newLetters()).length === 0) {
        expect(await doomed.isAlive()).toBe(true)
        await doomed.die()
      }
      expect(await onlyLetter()).toMatchObject({ status: 'Pending', version: 1 })
    })

    it('leaves its letter as it was when the office goes down before the commit, and reopens it later', async () => {
      const letter = await dead()
      const doomed = await desk.sentBack(letter)
      const killed = killedOnce()
      await Promise.allSettled([doomed.die()])
      expect(killed).toHaveBeenCalled()
      const meanwhile = await onlyLetter()
      if (meanwhile.status !== 'Pending') {
        expect(meanwhile).toMatchObject({ version: 2, resolution: 'retry' })
        await doomed.die()
      }
      expect(await onlyLetter()).toMatchObject({ id: letter.id, status: 'Pending', version: 3 })
      expect(await failuresOf(await onlyLetter())).toHaveLength(2)
    })

    it('has a row key of its own, however many of one instance die in the same moment', async () => {
      const doomed: Doomed[] = []
      for (let i = 0; i < 6; i++) doomed.push(await desk.doomed())
      await Promise.all(doomed.map((each, i) => (i % 2 === 0 ? each.die() : each.dieElsewhere())))
      const letters = await newLetters()
      expect(letters).toHaveLength(6)
      expect(new Set(letters.map(({ rowKey }) => rowKey)).size).toBe(6)
    })
  },
)
