import { describe, expect, it } from 'vitest'
import { withoutEcho } from './attempt.ts'

const hidden = (said: string, payload: string, secrets: readonly string[] = []) =>
  withoutEcho(said, secrets, Buffer.from(payload))

describe('what a receiver said', () => {
  it('is kept when it gives back nothing', () => {
    expect(hidden(': the field amount is missing', '{"total":1}', ['token'])).toBe(
      ': the field amount is missing',
    )
    expect(hidden('', '{"total":1}')).toBe('')
    expect(hidden(': no', '')).toBe(': no')
  })

  it('is shown without secrets', () => {
    expect(hidden(': bad token s3cret (s3cret)', 'x', ['', 's3cret'])).toBe(': bad token […] ([…])')
  })

  it('is shown without the payload, also of several lines', () => {
    expect(hidden(': cannot take {"a": 1} now', '{"a":\n 1}')).toBe(': cannot take […] now')
  })

  it('is shown without long runs of a payload', () => {
    const payload = JSON.stringify({ customer: 'Ada Lovelace, 12 St James Square, London', amount: 12 })
    expect(hidden(': customer Ada Lovelace, 12 St James Square, London is unknown', payload)).toBe(
      ': customer […] is unknown',
    )
    const cut = hidden(`: cannot take ${payload.slice(0, 50)}…`, payload)
    expect(cut).toBe(': cannot take […]…')
  })

  it('keeps the names of fields', () => {
    expect(hidden(': customerName is wrong', '{"customerName":"Ada"}')).toBe(': customerName is wrong')
  })
})
