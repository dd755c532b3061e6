/**
 * What a processor returned, as a decision. Whatever is not exactly a result is a failure and never a discard: a key that does not exist
 * here was meant to do something, and an event that went out without it would be wrong without a trace.
 */
import { isRecord } from '../../config/aliases.ts'
import type { Change, Decision } from '../ports.ts'
import { writeJson } from '../wire/json.ts'

/** Longer reasons are cut: they stand in the history. */
const MOST_CHARACTERS = 1_000

/** The decision that a result means. Throws a TypeError with what is wrong with it. */
export function decisionOf(result: unknown): Decision {
  if (!isRecord(result)) throw new TypeError(`the processor returned ${kindOf(result)}, not a result`)
  // Read once: it may be an object that answers differently each time.
  const { action, ...rest } = { ...result }
  switch (action) {
    case 'publish': {
      onlyKeys('the result', rest, ['change'])
      return { action, change: changeOf(rest.change) }
    }
    case 'discard': {
      onlyKeys('the result', rest, ['reason'])
      return { action, reason: textOf('reason', rest.reason)?.slice(0, MOST_CHARACTERS) ?? null }
    }
    case undefined:
      throw new TypeError("the processor returned an object without action; give 'publish' or 'discard'")
    default:
      throw new TypeError(`the processor returned an action that does not exist; give 'publish' or 'discard'`)
  }
}

const TEXTS = ['topic', 'type', 'key', 'correlationId'] as const

function changeOf(given: unknown): Change {
  if (given === undefined) return {}
  if (!isRecord(given)) throw new TypeError(`change of the result is ${kindOf(given)}, not an object`)
  const change = { ...given }
  onlyKeys('change', change, ['topic', 'type', 'key', 'payload', 'rawValue', 'correlationId'])
  const texts = TEXTS.flatMap((key) => {
    const text = textOf(`change.${key}`, change[key])
    return text === undefined ? [] : [[key, text] as const]
  })
  const value = changedValue(change.payload, change.rawValue)
  return { ...Object.fromEntries(texts), ...(value === undefined ? {} : { value }) }
}

function changedValue(payload: unknown, rawValue: unknown): Uint8Array | undefined {
  if (payload !== undefined && rawValue !== undefined) {
    throw new TypeError('change has both payload and rawValue; give one of them')
  }
  if (payload !== undefined) return new Uint8Array(writeJson(payload))
  if (rawValue === undefined) return undefined
  if (!(rawValue instanceof Uint8Array)) {
    throw new TypeError(`change.rawValue is ${kindOf(rawValue)}, not a Uint8Array`)
  }
  return new Uint8Array(rawValue)
}

function textOf(key: string, given: unknown): string | undefined {
  if (given === undefined || typeof given === 'string') return given
  throw new TypeError(`${key} is ${kindOf(given)}, not a string`)
}

function onlyKeys(where: string, given: object, known: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (!known.includes(key)) {
      throw new TypeError(`${where} has no '${key.slice(0, 80)}'; it has ${known.join(', ')}`)
    }
  }
}

/** What something is, without its content. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
