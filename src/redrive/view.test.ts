import { describe, expect, it } from 'vitest'
import { redriveAt } from '../../test/world/redrive.ts'
import { instant } from '../core/clock.ts'
import type { SampleLetter } from './redrive.ts'
import { MAX_SHOWN_PAYLOAD } from './shapes.ts'
import { redriveDetail, redriveFields } from './view.ts'

const NOW = instant(1_800_000_060_000_000n)

describe('a redrive as the API shows it', () => {
  it('tells when it was planned, until when it can be started, and for which letters', () => {
    const filter = { engine: 'hmac', minAttempts: 2, fromDate: instant(1_800_000_000_000_001n), q: undefined }
    const plan = redriveAt({ selection: { by: 'filter', filter } })
    expect(redriveFields(plan, NOW)).toMatchObject({
      filter: { engine: 'hmac', minAttempts: 2, fromDate: '2027-01-15T08:00:00.000001Z' },
      ids: null,
      plannedAtUtc: '2027-01-15T08:00:00.000000Z',
      validUntilUtc: '2027-01-15T08:30:00.000000Z',
      isExpired: false,
      startedAtUtc: null,
    })
    expect(redriveFields(plan, plan.validUntil).isExpired).toBe(true)
    expect(redriveFields(redriveAt({ state: 'running' }), plan.validUntil).isExpired).toBe(false)
    const named = redriveAt({ selection: { by: 'ids', ids: [{ engine: 'a', rowKey: 'b' }] } })
    expect(redriveFields(named, NOW)).toMatchObject({ filter: null, ids: 1 })
  })

  it('tells how fast it goes, as far as that is known', () => {
    const rateNow = (rate: number | null) => redriveFields(redriveAt({ rateNow: rate }), NOW).rateNow
    expect([7.916062036199162, 12_345.6, 0.00123456, 0, null].map(rateNow)).toEqual([
      7.92,
      12_300,
      0.00123,
      0,
      null,
    ])
  })

  it('tells per destination what remains', () => {
    const destination = {
      source: 'queues',
      name: 'orders',
      planned: 10,
      sent: 4,
      skipped: 2,
      failed: 1,
    } as const
    const shown = redriveDetail(
      { ...redriveAt(), destinations: [destination], exceptions: [], sample: [] },
      NOW,
    )
    expect(shown.destinations).toEqual([{ ...destination, remaining: 3 }])
    expect(shown.sentence).toBe('Send 1,204 letters back to orders.')
  })
})

describe('the sample of a plan', () => {
  const show = (payload: Uint8Array | null, before: Uint8Array | null = null) => {
    const letter: SampleLetter = {
      key: { engine: 'hmac', rowKey: 'r' },
      instanceId: 'i',
      errorMessage: 'no',
      outgoing: payload === null ? null : { queue: 'q', encoding: 'e', kind: 'k', reference: 'r', payload },
      before: before === null ? null : { payload: before },
      refusal: null,
    }
    const [shown] = redriveDetail(
      { ...redriveAt(), destinations: [], exceptions: [], sample: [letter] },
      NOW,
    ).sample
    return shown
  }

  it('shows text as text and other bytes in base64, before and after the repair', () => {
    expect(show(Buffer.from('{"a":1}'), Buffer.of(0, 255))).toEqual({
      engine: 'hmac',
      rowKey: 'r',
      instanceId: 'i',
      errorMessage: 'no',
      queue: 'q',
      encoding: 'e',
      kind: 'k',
      reference: 'r',
      payload: '{"a":1}',
      payloadEncoding: 'utf8',
      payloadTruncated: false,
      before: { payload: 'AP8=', payloadEncoding: 'base64', payloadTruncated: false },
      refusal: null,
    })
    expect(show(null)).toMatchObject({ queue: null, payload: null, payloadTruncated: false, before: null })
  })

  it('cuts what is long, and no character in two', () => {
    expect(show(Buffer.alloc(MAX_SHOWN_PAYLOAD, 'x'))?.payloadTruncated).toBe(false)
    // The limit lies within the first of them that crosses it.
    const text = show(Buffer.from(`x${'☃'.repeat(30_000)}`))
    expect(text).toMatchObject({ payloadEncoding: 'utf8', payloadTruncated: true })
    expect(text?.payload).toBe(`x${'☃'.repeat(21_845)}`)
    const bytes = show(Buffer.concat([Buffer.alloc(100_000, 'x'), Buffer.of(255)]))
    expect(bytes).toMatchObject({ payloadEncoding: 'base64', payloadTruncated: true })
    expect(Buffer.from(bytes?.payload ?? '', 'base64')).toHaveLength(MAX_SHOWN_PAYLOAD)
  })
})
