/** What every source promises about the way back of its letters. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { BartlebyError } from '../../../src/core/errors.ts'
import { historyOfLetter } from '../../../src/history/get.ts'
import { kindOf } from '../../../src/letters/kinds.ts'
import type { Letter } from '../../../src/letters/letter.ts'
import { lockLetter, readLetterById } from '../../../src/letters/lists/detail.ts'
import {
  type Edits,
  isOutside,
  isRefused,
  NO_EDITS,
  type Refused,
  type Sent,
  sendBack,
} from '../../../src/letters/source.ts'
import { inOffice } from '../../../src/letters/work.ts'
import { stores } from '../../world/stores.ts'
import { violationsIn } from '../../world/verified.ts'
import { WAYS_BACK, type WayBackDesk } from './desks.ts'

const SENDING = { notes: null, actor: 'nell' } as const
const RETRY = { ...SENDING, edit: null } as const

describe.each(stores.flatMap((kind) => WAYS_BACK.map((way) => ({ ...way, kind, store: kind.name }))))(
  'letters of $of on $store',
  ({ open, kind }) => {
    let desk: WayBackDesk
    beforeAll(async () => {
      desk = await open(kind)
    })
    afterAll(() => desk?.close())
    afterEach(async () => {
      expect(await violationsIn(desk.db, { clock: desk.clock })).toEqual([])
    })

    async function read({ id }: Letter): Promise<Letter> {
      const letter = await desk.db.session('test', (session) => readLetterById(session, id))
      if (letter === null) throw new Error(`there is no letter ${id}`)
      return letter
    }
    const render = (letters: readonly Letter[], edits: Edits = NO_EDITS) =>
      desk.source.render(desk.db.session.bind(desk.db), letters, edits)
    /** Sends letters as an act on many does. */
    const send = (
      letters: readonly Letter[],
      edits: Edits = NO_EDITS,
    ): Promise<readonly (Sent | Refused)[]> =>
      desk.source.sendOutside?.(letters, edits, SENDING) ??
      inOffice(desk.db, desk.clock, 'test.send', async (work) => {
        for (const { id } of letters) await lockLetter(work.tx, id)
        return sendBack(work, desk.source, letters, edits, SENDING)
      })
    const codesOf = (answers: readonly object[]): (string | null)[] =>
      answers.map((answer) => ('refusal' in answer ? String((answer as Refused).refusal.code) : null))
    const actsOn = async ({ id }: Letter): Promise<string[]> => {
      const rows = await desk.db.session('test', (session) => historyOfLetter(session, id, 10))
      return rows.map(({ operation }) => operation)
    }
    const codeOf = (act: Promise<unknown>): Promise<string> =>
      act.then(
        () => 'done',
        (error: unknown) => (error instanceof BartlebyError ? error.code : String(error)),
      )
    const change = (letter: Letter, status: 'Pending' | 'Resolved' | 'Expired') =>
      desk.letters.change(letter, { status, notes: null, actor: 'nell' })
    const one = async (): Promise<Letter> => {
      const [letter] = await desk.die(1)
      if (letter === undefined) throw new Error('nothing died')
      return letter
    }

    it('leave over a network only where their kind says so, which verify goes by', () => {
      expect(kindOf(desk.source.name).sendsOutside === true).toBe(isOutside(desk.source))
    })

    it('are rendered many at a time: each says where it goes, or why it cannot, and nothing is written', async () => {
      const letters = await desk.die(4)
      const [, second] = letters
      if (second === undefined) throw new Error('nothing died')
      await desk.lose(second)
      const rendered = await render(letters)
      await desk.find?.(second)
      expect(codesOf(rendered)).toEqual([null, desk.lostCode, null, null])
      expect(rendered.map(({ letter }) => letter.id)).toEqual(letters.map(({ id }) => id))
      for (const letter of letters) expect(await read(letter)).toMatchObject({ version: letter.version })
    })

    it('are sent many at a time, and what is refused of one leaves the others alone', async () => {
      const letters = await desk.die(4)
      const [first, second, third, fourth] = letters
      if (first === undefined || second === undefined || third === undefined || fourth === undefined)
        throw new Error('nothing died')
      await desk.lose(second)
      const answers = await send(letters)
      await desk.find?.(second)
      expect(answers.filter(isRefused).map(({ letter }) => letter.id)).toEqual([second.id])
      for (const letter of [first, third, fourth]) {
        expect(await read(letter)).toMatchObject({ status: 'Resolved', resolution: 'retry', position: null })
        expect(await desk.side(letter)).toBe('on its way')
        expect((await actsOn(letter)).slice(0, -1)).toHaveLength(1)
      }
      expect(await read(second)).toMatchObject({ status: 'Pending', version: second.version, sentAs: null })
    })

    it('become the same one by one and many at a time', async () => {
      const [alone, among] = await desk.die(3)
      if (alone === undefined || among === undefined) throw new Error('nothing died')
      const receipt = await desk.letters.retry(alone, RETRY)
      const [sent] = await send([among])
      if (sent === undefined || isRefused(sent)) throw new Error('it was refused')
      const [one, other] = [await read(alone), await read(among)]
      for (const [letter, { messageId, queue }] of [
        [one, receipt],
        [other, sent],
      ] as const)
        expect(letter).toMatchObject({
          sentAs: messageId,
          sentTo: queue,
          resolvedBy: 'nell',
          notes: 'Retried',
        })
      const { status, resolution, version, redrive } = one
      expect(other).toMatchObject({ status, resolution, version, redrive })
      expect(await actsOn(among)).toEqual(await actsOn(alone))
    })

    it('leave as they were edited, and the original stays; or the edit is refused', async () => {
      const letter = await one()
      const edit = { payload: Buffer.from('{"n":"edited"}') }
      const act = desk.letters.retry(letter, { ...SENDING, edit })
      if (!desk.takesEdits) {
        expect(await codeOf(act)).toBe('parameter_invalid')
        expect(await read(letter)).toMatchObject({ status: 'Pending', editedPayload: null })
        return
      }
      await act
      const after = await read(letter)
      expect(Buffer.from(after.payload)).toEqual(Buffer.from(letter.payload))
      expect(Buffer.from(after.editedPayload ?? '').toString()).toBe('{"n":"edited"}')
    })

    it('leave once, however many ask at the same time', async () => {
      const letter = await one()
      const asked = Array.from({ length: 5 }, () => codeOf(desk.letters.retry(letter, RETRY)))
      const codes = (await Promise.all(asked)).sort()
      expect(codes).toEqual(['done', ...Array.from({ length: 4 }, () => 'letter_status_wrong')])
      expect((await actsOn(letter)).slice(0, -1)).toHaveLength(1)
    })

    it('are taken back from their way, unless somebody is working on them', async () => {
      const [waiting, taken] = await desk.die(2)
      if (waiting === undefined || taken === undefined) throw new Error('nothing died')
      await send([waiting, taken])
      await desk.take(taken)
      await change(waiting, 'Pending')
      expect(await read(waiting)).toMatchObject({ status: 'Pending', sentAs: null, sentTo: null })
      expect(await desk.side(waiting)).toBe('dead')
      if (desk.canRecall) expect(await codeOf(change(taken, 'Pending'))).toBe('letter_in_flight')
    })

    it.each(['Resolved', 'Expired'] as const)(
      'are given up when they are %s without being sent, and back when that is undone',
      async (status) => {
        const letter = await one()
        expect(await desk.side(letter)).toBe('dead')
        await change(letter, status)
        expect(await desk.side(letter)).toBe('given up')
        await change(letter, 'Pending')
        expect(await desk.side(letter)).toBe('dead')
        expect(codesOf(await send([await read(letter)]))).toEqual([null])
        expect(await desk.side(letter)).toBe('on its way')
      },
    )
  },
)
