/** Events as processors see them. Each function that is called gets one of its own, so that what it does to the bytes stays with it. */
import { isUtf8 } from 'node:buffer'
import { storedText } from '../../core/content.ts'
import { readJson } from '../wire/json-read.ts'
import type { SentEvent } from './calls.ts'
import type { DeadEvent } from './processor.ts'

/** A fresh event, frozen all the way down; bytes cannot be frozen, and are copies. */
export function deadEvent(sent: SentEvent): DeadEvent {
  const { publishedKey, timestampMs, rawKey, rawValue, headers, ...rest } = sent
  return frozen({
    ...rest,
    position: { ...rest.position },
    exception: { ...rest.exception },
    reasons: [...rest.reasons],
    warnings: [...rest.warnings],
    key: publishedKey !== null && isUtf8(publishedKey) ? storedText(publishedKey) : null,
    payload: payloadOf(rawValue),
    rawKey: rawKey?.slice() ?? null,
    rawValue: rawValue?.slice() ?? null,
    headers: headers.map(({ name, value }) => ({ name, value: value?.slice() ?? null })),
    timestamp: new Date(timestampMs),
  })
}

function payloadOf(value: Uint8Array | null): unknown {
  if (value === null) return undefined
  try {
    return readJson(value)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Without recursion: payloads may be nested as deep as they like. */
function frozen<T extends object>(value: T): T {
  const open: object[] = [value]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (ArrayBuffer.isView(next)) continue
    Object.freeze(next)
    for (const inner of Object.values(next)) if (typeof inner === 'object' && inner !== null) open.push(inner)
  }
  return value
}
