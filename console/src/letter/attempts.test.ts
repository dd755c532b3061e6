import { describe, expect, it } from 'vitest'
import type { LetterAttempt } from '../api/types.ts'
import { compareAttempts, differences } from './attempts.ts'

const attempt = (number: number, errorMessage: string, more: Partial<LetterAttempt> = {}): LetterAttempt => ({
  number,
  failedAtUtc: '2027-01-01T00:00:00.000000Z',
  failedBy: null,
  errorClass: 'Error',
  errorMessage,
  errorStack: null,
  ...more,
})

const marked = (before: string, text: string) =>
  differences(before, text)
    .map((piece) => (piece.differs ? `[${piece.text}]` : piece.text))
    .join('')

describe('what differs between two messages', () => {
  it('is marked where it stands', () => {
    expect(marked('order 17 failed after 300 ms', 'order 18 failed after 301 ms')).toBe(
      'order [18] failed after [301] ms',
    )
  })

  it('is the middle where the number of words differs', () => {
    expect(marked('timeout of payments', 'timeout of a gateway of payments')).toBe(
      'timeout of [a gateway of ]payments',
    )
  })

  it('is nothing in equal messages', () => {
    expect(differences('the same', 'the same')).toEqual([{ text: 'the same', differs: false }])
  })
})

describe('compared attempts', () => {
  it('come newest first and say what is new about each', () => {
    const [third, second, first] = compareAttempts([
      attempt(3, 'order 18', { errorClass: 'TypeError' }),
      attempt(1, 'order 17'),
      attempt(2, 'order 17'),
    ])
    expect([third?.attempt.number, third?.isSame, third?.isOtherClass]).toEqual([3, false, true])
    expect([second?.attempt.number, second?.isSame]).toEqual([2, true])
    expect([first?.attempt.number, first?.isSame]).toEqual([1, false])
  })

  it('do not count a message that the stack repeats as another stack', () => {
    const stack = (message: string, line: number) => ({
      errorStack: `Error: ${message}\n at f (/a.ts:${line}:1)`,
    })
    const [second] = compareAttempts([attempt(1, 'a 1', stack('a 1', 1)), attempt(2, 'a 2', stack('a 2', 1))])
    expect([second?.isOtherStack, second?.isSame]).toEqual([false, false])
    const [other] = compareAttempts([attempt(1, 'a', stack('a', 1)), attempt(2, 'a', stack('a', 2))])
    expect(other?.isOtherStack).toBe(true)
  })
})
