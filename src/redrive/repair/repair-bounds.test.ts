import { describe, expect, it } from 'vitest'
import { RepairBudget, TOO_LONG, TOO_MUCH_MEMORY } from './repair-bounds.ts'
import type { RepairedLetter } from './repair-thread.ts'

const cost = { workMs: 1, growthBytes: 10 }
const fine = { ok: true as const, repaired: { payload: null, headers: {} }, ...cost }
const refused = (reason: string) => ({ ok: false as const, reason, ...cost })

describe('the recipe of a plan', () => {
  it('may cost what it may cost', () => {
    const budget = new RepairBudget()
    for (let round = 0; round < 1_000; round++) budget.spend([fine, refused('the payload is no JSON')])
  })

  it.each<[string, RepairedLetter, number, string]>([
    [
      'slow letters',
      refused(TOO_LONG),
      10,
      'it took longer than 1 s for each of 10 letters; make it simpler',
    ],
    ['letters that take all memory', refused(TOO_MUCH_MEMORY), 10, 'too much memory for each of 10 letters'],
    [
      'time',
      { ...fine, workMs: 30_001 },
      10,
      'it took longer than the 300 s that the letters of a plan have together',
    ],
    ['size', { ...fine, growthBytes: 2 ** 28 + 1 }, 4, 'larger than they are, at most 1 GiB is allowed'],
  ])('is refused beyond its bound of %s, which is named', (_name, trial, letters, said) => {
    const budget = new RepairBudget()
    for (let letter = 1; letter < letters; letter++) budget.spend([trial])
    expect(() => budget.spend([trial])).toThrow(said)
  })
  it('is refused for letters whose process was ended, whatever each of them was ended for', () => {
    const budget = new RepairBudget()
    for (let letter = 0; letter < 9; letter++)
      budget.spend([refused(letter % 2 === 0 ? TOO_LONG : TOO_MUCH_MEMORY)])
    expect(() => budget.spend([refused(TOO_LONG)])).toThrow(
      'it took longer than 1 s or used too much memory for each of 10 letters',
    )
  })
})
