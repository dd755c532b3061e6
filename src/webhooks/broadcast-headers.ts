/**
 * What a broadcast says in its headers: how urgent it is, when it is to go out, and which of its own headers go with it. Pure.
 * No header of a producer ever takes the place of one that deliveries carry themselves.
 */
import { type Instant, later } from '../core/clock.ts'
import { parseTimestamp } from '../core/timestamp.ts'
import { Refused } from './refusal.ts'
import type { HeaderList } from './webhook.ts'

const INTEGER = /^[+-]?\d+$/
const MINUTE_US = 60_000_000

/** The absolute value of an integer; 0 for anything else, and for what no store keeps exactly. */
export function readPriority(text: string): number {
  const priority = INTEGER.test(text) ? Math.abs(Number(text)) : 0
  return Number.isSafeInteger(priority) ? priority : 0
}

/** When a scheduled message goes out; refused when it is no RFC 3339 time, or sooner than the setting allows. */
export function readScheduledFor(text: string, now: Instant, minDelayMinutes: number): Instant {
  const parsed = parseTimestamp(text)
  if (!parsed.ok) throw new Refused('schedule_invalid')
  if (parsed.at < later(now, BigInt(Math.round(minDelayMinutes * MINUTE_US)))) {
    throw new Refused(
      'schedule_too_soon',
      `scheduled time must be at least ${minDelayMinutes} minutes in the future`,
    )
  }
  return parsed.at
}

/** Set by every delivery, or a matter of its connection. */
const BARRED: ReadonlySet<string> = new Set([
  'content-type',
  'user-agent',
  'x-request-id',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'expect',
])
const BARRED_PREFIXES = ['x-broker-', 'proxy-'] as const

const isBarred = (lowerName: string, tokenHeader: string): boolean =>
  BARRED.has(lowerName) ||
  BARRED_PREFIXES.some((prefix) => lowerName.startsWith(prefix)) ||
  lowerName === tokenHeader.toLowerCase()

/**
 * The headers that `list` names, in its order and spelling, of two spellings the first. `rawHeaders` are names and values in
 * turn as they came; a header counts by its first value, and an absent, empty or barred one is left out.
 */
export function readMetadataHeaders(
  list: string,
  rawHeaders: readonly string[],
  tokenHeader: string,
): HeaderList {
  const named = new Map<string, string>()
  for (const name of list.split(',').map((part) => part.trim())) {
    const lower = name.toLowerCase()
    if (name !== '' && !named.has(lower) && !isBarred(lower, tokenHeader)) named.set(lower, name)
  }
  if (named.size === 0) return []
  const values = firstValues(rawHeaders)
  return [...named].flatMap(([lower, name]) => {
    const value = values.get(lower) ?? ''
    return value === '' ? [] : [[name, value] as const]
  })
}

function firstValues(rawHeaders: readonly string[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? ''
    if (!values.has(name)) values.set(name, rawHeaders[i + 1] ?? '')
  }
  return values
}
