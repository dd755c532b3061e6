import { describe, expect, it } from 'vitest'
import { redriveAt } from '../../test/world/redrive.ts'
import { instant } from '../core/clock.ts'
import type { Destination } from './redrive.ts'
import { redriveSentence } from './sentence.ts'

const to = (name: string, source: Destination['source'] = 'queues'): Destination => ({
  source,
  name,
  planned: 1,
  sent: 0,
  skipped: 0,
  failed: 0,
})
const orders = [to('orders')]
const canary = { letters: 10, confirmPercent: 100, waitSeconds: 600 }
const stopRule = { percent: 20, of: 100 }
const startedAt = instant(1_800_000_001_000_000n)

describe('the sentence of a plan', () => {
  it('says what will be done, where to, how fast and when it stops', () => {
    const terms = { rate: 50, canary, stopRule }
    expect(redriveSentence(redriveAt({ terms }), orders)).toBe(
      'Send 1,204 letters back to orders, at most 50 a second, ten first; stop when more than 20% of 100 come back.',
    )
    expect(redriveSentence(redriveAt({ terms: { canary: { ...canary, letters: 1_000 } } }))).toBe(
      'Send 1,204 letters back, 1,000 first.',
    )
    expect(redriveSentence(redriveAt({ terms: { rate: 0.5 } }), orders)).toBe(
      'Send 1,204 letters back to orders, at most 0.5 a second.',
    )
    expect(redriveSentence(redriveAt({ counts: { planned: 1 }, terms: { canary } }), orders)).toBe(
      'Send 1 letter back to orders.',
    )
  })

  it('counts destinations, and the same queue once', () => {
    const several = [to('orders'), to('orders', 'http'), to('orders', 'outbox'), to('bills', 'engines')]
    expect(redriveSentence(redriveAt({ terms: { rate: 50 } }), several)).toBe(
      'Send 1,204 letters back to 3 destinations, at most 50 a second to each.',
    )
    expect(redriveSentence(redriveAt(), [to('orders'), to('orders', 'http')])).toBe(
      'Send 1,204 letters back to orders.',
    )
    expect(redriveSentence(redriveAt(), [to('', 'webhooks')])).toBe('Send 1,204 letters back.')
  })

  it('has its own words for every action', () => {
    const terms = { rate: 1_000, stopRule }
    expect(redriveSentence(redriveAt({ action: 'move', queue: 'later', terms }), [to('later')])).toBe(
      'Move 1,204 letters to later, at most 1,000 a second; stop when more than 20% of 100 come back.',
    )
    expect(redriveSentence(redriveAt({ action: 'discard', terms }), orders)).toBe(
      'Discard 1,204 letters, at most 1,000 a second.',
    )
    expect(redriveSentence(redriveAt({ action: 'restore' }))).toBe('Restore 1,204 letters.')
  })

  it('says why there is nothing to do', () => {
    const empty = (numbers: object, action: 'retry' | 'discard' = 'retry') =>
      redriveSentence(redriveAt({ action, counts: { planned: 0 }, numbers }))
    expect(empty({})).toBe('No letter matches; there is nothing to do.')
    expect(empty({ matched: 12, inFlight: 10, noDestination: 2 })).toBe(
      'Nothing to do: of 12 letters 10 are in flight and 2 have no destination.',
    )
    expect(empty({ matched: 1_003, inFlight: 1, orderBlocked: 1_001, duplicate: 1 })).toBe(
      'Nothing to do: of 1,003 letters 1 is in flight, 1,001 wait for an earlier one of their key and 1 is named more than once.',
    )
    expect(empty({ matched: 1, invalid: 1 }, 'discard')).toBe(
      'Nothing to do: the letter cannot be discarded.',
    )
    expect(empty({ matched: 2, invalid: 2 })).toBe('Nothing to do: of 2 letters 2 cannot be sent back.')
  })
})

describe('the sentence of a redrive that was started', () => {
  it('tells of the letters that go first', () => {
    const trying = (counts: object) =>
      redriveSentence(redriveAt({ state: 'canary', terms: { canary }, counts }))
    expect(trying({ sent: 10, confirmed: 6, returned: 1 })).toBe(
      'Trying 10 letters first: 6 confirmed, 1 returned, 3 unconfirmed.',
    )
    expect(trying({})).toBe('Trying 10 letters first: none sent yet.')
    expect(trying({ sent: 2, skipped: 1, failed: 1 })).toBe(
      'Trying 10 letters first: 2 unconfirmed, 1 skipped, 1 failed.',
    )
    expect(trying({ planned: 1 })).toBe('Trying 1 letter first: none sent yet.')
  })

  it('tells how far it is', () => {
    const state = 'running'
    expect(redriveSentence(redriveAt({ state, counts: { sent: 300 } }), orders)).toBe(
      'Sending 1,204 letters back to orders: 300 sent, 904 to go.',
    )
    expect(redriveSentence(redriveAt({ state, counts: { sent: 300, skipped: 3, failed: 1 } }))).toBe(
      'Sending 1,204 letters back: 300 sent, 3 skipped, 1 failed, 900 to go.',
    )
    const move = redriveAt({ state, action: 'move', queue: 'later', counts: { sent: 4 } })
    expect(redriveSentence(move)).toBe('Moving 1,204 letters to later: 4 moved, 1,200 to go.')
    const discard = redriveAt({ state, action: 'discard', counts: { planned: 3, sent: 1 } })
    expect(redriveSentence(discard)).toBe('Discarding 3 letters: 1 discarded, 2 to go.')
  })

  it('tells why it is paused', () => {
    const paused = (note: string | null) => redriveAt({ state: 'paused', note, counts: { sent: 300 } })
    expect(redriveSentence(paused("queue 'orders' does not exist"))).toBe(
      "Paused: queue 'orders' does not exist. 300 of 1,204 letters sent, 904 to go.",
    )
    expect(redriveSentence(paused('lunch.'))).toBe('Paused: lunch. 300 of 1,204 letters sent, 904 to go.')
    expect(redriveSentence(paused('by nell'))).toBe('Paused by nell. 300 of 1,204 letters sent, 904 to go.')
    expect(redriveSentence(paused(null))).toBe('Paused. 300 of 1,204 letters sent, 904 to go.')
  })

  it('tells what became of it', () => {
    const done = (changes: object) => redriveSentence(redriveAt({ state: 'done', ...changes }), orders)
    expect(done({ counts: { sent: 1_204, confirmed: 1_190, returned: 4 } })).toBe(
      'Sent 1,204 letters back to orders: 1,190 confirmed, 4 returned, 10 unconfirmed.',
    )
    expect(done({ counts: { sent: 1_200, confirmed: 1_200, skipped: 3, failed: 1 } })).toBe(
      'Sent 1,200 of 1,204 letters back to orders: 1,200 confirmed; 3 skipped, 1 failed.',
    )
    expect(done({ counts: { planned: 2, skipped: 2 } })).toBe(
      'Sent none of 2 letters back to orders: 2 skipped.',
    )
    expect(done({ action: 'discard', counts: { planned: 1, sent: 1 } })).toBe('Discarded 1 letter.')
    expect(done({ action: 'restore', counts: { planned: 5, sent: 4, skipped: 1 } })).toBe(
      'Restored 4 of 5 letters: 1 skipped.',
    )
  })

  it('tells why it ended early, and what is left', () => {
    const counts = { sent: 300, confirmed: 200, returned: 40, failed: 4 }
    const note = 'more than 20% of the last 100 came back'
    expect(redriveSentence(redriveAt({ state: 'stopped', note, startedAt, counts }))).toBe(
      'Stopped: more than 20% of the last 100 came back. 300 of 1,204 letters sent: 200 confirmed, 40 returned, 60 unconfirmed; 4 failed, 900 not touched.',
    )
    const cancelled = { state: 'cancelled', note: 'wrong queue' } as const
    expect(redriveSentence(redriveAt({ ...cancelled, startedAt, counts: { sent: 0 } }))).toBe(
      'Cancelled: wrong queue. 0 of 1,204 letters sent; 1,204 not touched.',
    )
    expect(redriveSentence(redriveAt(cancelled))).toBe('Cancelled: wrong queue. It was not started.')
    expect(redriveSentence(redriveAt({ state: 'cancelled' }))).toBe('Cancelled. It was not started.')
  })
})
