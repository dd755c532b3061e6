import { describe, expect, it } from 'vitest'
import type { LetterAttempt, LetterEvent } from '../api/types.ts'
import { returnedAt, timelineOf } from './timeline.ts'

const at = (second: number): string => `2027-01-01T00:00:0${second}.000000Z`

const event = (operation: string, second: number, more: Partial<LetterEvent> = {}): LetterEvent => ({
  engine: 'hmac',
  rowKey: `${operation}-${second}`,
  operation,
  status: 'Succeeded',
  createdAtUtc: at(second),
  durationMs: 0,
  actor: null,
  notes: null,
  error: null,
  letterVersion: null,
  ...more,
})

const failure = (number: number, second: number): LetterAttempt => ({
  number,
  failedAtUtc: at(second),
  failedBy: 'worker-1',
  errorClass: 'TypeError',
  errorMessage: 'no total\nmore',
  errorStack: null,
})

describe('the timeline of a letter', () => {
  it('has failures, acts and outcomes, the newest first, and each failure once', () => {
    const moments = timelineOf({
      attempts: [failure(2, 4), { ...failure(1, 1), errorClass: 'RangeError' }],
      history: [
        event('reopen', 4),
        event('retry', 3, { actor: 'ada', notes: 'fixed it' }),
        event('capture', 1),
        event('rotate', 1, { status: 'Failed', error: 'RangeError: no total' }),
        event('rotate', 0, { status: 'Failed', error: 'boom' }),
      ],
    })
    expect(moments.map(({ title, by, says }) => [title, by, says])).toEqual([
      ['Returned: failed again', null, null],
      // Its error stands at the top of the page.
      ['Failed, attempt 2', 'worker-1', null],
      ['Sent back', 'ada', 'fixed it'],
      ['Captured', null, null],
      ['Failed, attempt 1', 'worker-1', 'RangeError: no total'],
      ['rotate: failed', null, 'boom'],
    ])
  })

  it('leaves out notes that repeat the act', () => {
    const [moment] = timelineOf({ attempts: [], history: [event('retry', 1, { notes: 'Retried' })] })
    expect(moment?.says).toBeNull()
  })
})

describe('a letter that came back', () => {
  it('says so until something else is done with it', () => {
    const history = [event('retry', 2), event('reopen', 3)]
    expect(returnedAt({ status: 'Pending', history })).toBe(at(3))
    expect(returnedAt({ status: 'Pending', history: [...history, event('restore', 4)] })).toBeNull()
    expect(returnedAt({ status: 'Resolved', history })).toBeNull()
    expect(returnedAt({ status: 'Pending', history: [event('capture', 1)] })).toBeNull()
  })
})
