import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OutboxOffice, PLACES } from '../../../../test/world/outbox-office.ts'
import { seededRandom } from '../../../../test/world/random.ts'
import { violationsIn } from '../../../../test/world/verified.ts'
import { BartlebyError } from '../../../core/errors.ts'
import type { LetterSummary } from '../../../letters/letter.ts'
import { inOffice } from '../../../letters/work.ts'
import { StoreUnavailable } from '../../../store/database.ts'

const ACTS = 60
const OPERATORS = 4
const STATUSES = ['Resolved', 'Expired', 'Pending'] as const

class Crash extends Error {}

/** What may go wrong for an operator: the letter has another status by now, or somebody else has the store. */
const isExpected = (error: unknown): boolean =>
  error instanceof Crash ||
  (error instanceof BartlebyError &&
    ['letter_status_wrong', 'letter_in_flight', 'letter_outbox_away'].includes(error.code)) ||
  error instanceof StoreUnavailable

describe.each(PLACES)('rows and letters of an outbox $name', (place) => {
  let office: OutboxOffice
  const random = seededRandom()
  beforeAll(async () => {
    office = await OutboxOffice.open(place)
    await office.begin()
  })
  afterAll(() => office?.close())

  /** One act on one letter; now and then the office ends just before it is durable. */
  async function act(letters: readonly LetterSummary[]): Promise<void> {
    const letter = letters[random.whole(0, letters.length - 1)]
    if (letter === undefined) return
    const { db, clock } = office.store
    const retries = random.chance(0.5)
    const status = STATUSES[random.whole(0, 2)] ?? 'Pending'
    const crashes = random.chance(0.15)
    await inOffice(db, clock, 'test.act', async (work) => {
      if (retries) await office.letters.retryIn(work, letter, { edit: null, notes: null, actor: 'nell' })
      else await office.letters.changeIn(work, letter, { status, notes: 'because', actor: 'nell' })
      if (crashes) throw new Crash()
    }).catch((error: unknown) => {
      if (!isExpected(error)) throw error
    })
  }

  const quietly = (work: Promise<unknown>) =>
    work.catch((error: unknown) => {
      if (!isExpected(error)) throw error
    })

  it(`agree in the end, whatever many do at once (seed ${random.seed})`, async () => {
    for (let i = 0; i < 12; i++) await office.table.insert(i % 2 === 0 ? { line: `${i % 6}` } : {})
    for (let i = 0; i < 12; i++) await office.die()
    const letters = await office.list()
    office.deliver = async () => {
      office.store.clock.advance(1n)
      if (random.chance(0.5)) throw new Error('connection refused')
    }
    await office.secondClerk(async (other) => {
      let isOver = false
      const until = async (work: () => Promise<unknown>) => {
        while (!isOver) {
          await quietly(work())
          await new Promise((resolve) => setTimeout(resolve, random.whole(0, 3)))
        }
      }
      const others = [
        until(() => office.deliverOnly()),
        until(() => office.reconcile()),
        until(() => other()),
      ]
      const operators = Array.from({ length: OPERATORS }, async () => {
        for (let i = 0; i < ACTS; i++) await act(letters)
      })
      await Promise.all(operators).finally(() => {
        isOver = true
      })
      await Promise.all(others)
    })
    // What is on its way arrives; what was half done is put right.
    office.deliver = async () => {}
    for (let i = 0; i < 3; i++) await office.dispatch()

    const letterOf = new Map((await office.list()).map((letter) => [`${letter.id}`, letter]))
    const rows = await office.table.query(
      'SELECT id, dead_at IS NOT NULL AS dead, processed_at IS NOT NULL AS processed, letter_id, letter_due AS due FROM outbox_messages',
    )
    const isTrue = (value: unknown) => value === true || value === 1
    for (const row of rows) {
      const letter = letterOf.get(`${row.letter_id}`)
      const isPending = letter?.status === 'Pending'
      const [isDead, isProcessed, isDue] = [isTrue(row.dead), isTrue(row.processed), isTrue(row.due)]
      expect({ row, isDue }).toEqual({ row, isDue: false })
      if (isDead) expect({ row, isPending }).toEqual({ row, isPending: !isProcessed })
      else if (letter !== undefined && isProcessed && isPending)
        expect((await office.letters.get(letter)).history[0]?.operation).toBe('restore')
    }
    expect(await violationsIn(office.store.db, { clock: office.store.clock })).toEqual([])
  })
})
