import { describe, expect, it } from 'vitest'
import { instant } from '../../../core/clock.ts'
import { Refused } from '../refusal.ts'
import { checkDigest, exemption, gatewayKey, readSignature } from '../routes/signature-check.ts'

const SECRET = 'dGVzdC1obWFjLXNlY3JldC1mb3ItaW50ZWdyYXRpb24='
const BODY = '{"test":"hello world"}'
const DIGEST = '8caced5924e56d6db8d4a3c22841ee190f5f632ac9f09f1be3da6e5961470e94'
const SIGNED_AT = 1_700_000_000

/** What the gateway says: its status and text, or that the request passes. */
function verdict(header: string, { now = SIGNED_AT, body = BODY } = {}): string {
  try {
    const at = instant(BigInt(Math.round(now * 1_000)) * 1_000n)
    checkDigest(readSignature(header, at, 300), Buffer.from(body), gatewayKey(SECRET))
    return 'pass'
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return `${error.status} ${error.message}`
  }
}

const MALFORMED = '401 malformed X-Broker-Signature header'
const UNTIMELY = '403 request timestamp outside tolerance window'
const WRONG = '403 invalid signature'

describe('a signed request', () => {
  it('passes, in whatever order its parts are', () => {
    expect(verdict(`t=${SIGNED_AT},v1=${DIGEST}`)).toBe('pass')
    expect(verdict(`v1=${DIGEST}, t=${SIGNED_AT}`, { now: SIGNED_AT + 300 })).toBe('pass')
    expect(verdict(`  t=${SIGNED_AT} ,  v1=${DIGEST} `)).toBe('pass')
  })

  it('passes without a body', () => {
    const digest = '45489119743cdfdf146d3e7980f2af9dabc21961b258cc01bcf618d4d66cb06c'
    expect(verdict(`t=${SIGNED_AT},v1=${digest}`, { body: '' })).toBe('pass')
  })

  it('passes as long as the tolerance lasts, in both directions', () => {
    const header = `t=${SIGNED_AT},v1=${DIGEST}`
    expect(verdict(header, { now: SIGNED_AT + 300.999 })).toBe('pass')
    expect(verdict(header, { now: SIGNED_AT + 301 })).toBe(UNTIMELY)
    expect(verdict(header, { now: SIGNED_AT - 300 })).toBe('pass')
    expect(verdict(header, { now: SIGNED_AT - 301 })).toBe(UNTIMELY)
    const later = '67529aa0d5f0e5e8d267e20938ca08f984e3f65306da05ffeab1c36bf2e31d01'
    expect(verdict(`t=1700000301,v1=${later}`)).toBe(UNTIMELY)
  })
})

describe('a request whose signature is not right', () => {
  it('is refused when there is none', () => {
    expect(verdict('')).toBe('401 missing X-Broker-Signature header')
  })

  it.each([
    't=1700000000',
    't=abc,v1=00',
    't=,v1=00',
    't=1700000000.5,v1=00',
    't=1700000000,v1=00,v2=00',
    'v1=00,v1=00',
    't=1700000000,t=1700000000',
    'garbage',
    `t=${SIGNED_AT};v1=${DIGEST}`,
    ',',
  ])('is refused as malformed: %s', (header) => {
    expect(verdict(header)).toBe(MALFORMED)
  })

  it.each([
    ['another digest', DIGEST.replace('8', '9')],
    ['upper case', DIGEST.toUpperCase()],
    ['half its length', 'deadbeef'.repeat(4)],
    ['more than its length', `${DIGEST}00`],
    ['no hexadecimal', 'z'.repeat(64)],
    ['zeros', '0'.repeat(64)],
    ['nothing', ''],
  ])('is refused as wrong: %s', (_, digest) => {
    expect(verdict(`t=${SIGNED_AT},v1=${digest}`)).toBe(WRONG)
  })

  it('is refused when the body or the time is another', () => {
    expect(verdict(`t=${SIGNED_AT},v1=${DIGEST}`, { body: `${BODY} ` })).toBe(WRONG)
    expect(verdict(`t=${SIGNED_AT + 1},v1=${DIGEST}`)).toBe(WRONG)
  })

  it('is told of its age before anything about its digest', () => {
    expect(verdict(`t=${SIGNED_AT},v1=00`, { now: SIGNED_AT + 600 })).toBe(UNTIMELY)
  })
})

describe('a path without signature', () => {
  const isExempt = exemption(['/_status', '/metrics', '/debug/pprof/'])

  it.each(['/_status', '/metrics', '/metrics/x', '/metrics/x/y', '/debug/pprof', '/debug/pprof/heap'])(
    'may be %s',
    (path) => {
      expect(isExempt(path)).toBe(true)
    },
  )

  it.each([
    '/metricsfoo',
    '/channel/metrics',
    '//metrics',
    '/Metrics',
    '/%6Detrics',
    '/metrics/../channel/x',
    '/metrics/..',
    '/metrics/./x',
    '/metrics//x',
    '/metrics/%2e%2e/channel/x',
    '/metrics/..%2Fchannel',
    '/metrics/..\\channel',
    'http://host/metrics',
    '/',
    '',
  ])('may not be %s', (path) => {
    expect(isExempt(path)).toBe(false)
  })
})
