/**
 * Drafts as rows of a table. Refuses what its columns cannot hold: on PostgreSQL a failed statement ends the
 * application's whole transaction.
 */
import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../core/clock.ts'
import { isClosing, isOpening, isQuote, jsonProblem, skipSpace, tokenEnd } from '../../../core/json/tokens.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import type { Layout } from '../table/layout.ts'
import type { ColumnName } from '../table/table-names.ts'
import { type Content, type Draft, isUuid, type Place, refuseField, refusePayload } from './draft.ts'

export interface NewRow extends Omit<Draft, 'content'> {
  readonly id: string | null
  readonly payload: Buffer | string
}

/** `at` is the message's place in its call. */
export type Fitter = (draft: Draft, at: Place) => NewRow

const INTEGER_BITS: Readonly<Record<string, number>> = { smallint: 16, integer: 32, bigint: 64 }

const UUID_LENGTH = 36

/** Producers make uuids themselves; databases count up numbers. */
export function makesIds({ types }: Layout): boolean {
  const length = Number(/\((\d+)\)/.exec(types.id)?.[1] ?? UUID_LENGTH)
  return /uuid|guid|char|text|clob/.test(types.id) && length >= UUID_LENGTH
}

export function fitterFor(layout: Layout, clock?: Clock): Fitter {
  const fitPayload = payloadFitter(layout)
  const fitTenant = textFitter(layout, 'tenantId')
  const fitType = textFitter(layout, 'eventType')
  const fitKey = textFitter(layout, 'idempotencyKey', 'key')
  const fitOrderingKey = textFitter(layout, 'orderingKey')
  const fitCorrelationId = textFitter(layout, 'correlationId')
  const nextId = makesIds(layout) ? rowIds(clock ?? new SystemClock()) : () => null
  return ({ content, tenantId, eventType, key, orderingKey, correlationId, keyIsGiven, headers }, at) => ({
    id: nextId(),
    tenantId: fitTenant(tenantId, at),
    eventType: fitType(eventType, at),
    payload: fitPayload(content, at),
    key: fitKey(key, at),
    keyIsGiven,
    orderingKey: orderingKey === null ? null : fitOrderingKey(orderingKey, at),
    headers,
    correlationId: correlationId === null ? null : fitCorrelationId(correlationId, at),
  })
}

/** SQLite takes any text anywhere; PostgreSQL fails on one that does not suit the type. */
function textFitter(
  { dialect, types }: Layout,
  column: ColumnName,
  field: string = column,
): (text: string, at: Place) => string {
  const type = types[column]
  if (dialect === 'sqlite') return (text) => text
  if (type === 'uuid') {
    return (text, at) => {
      if (!isUuid(text)) refuseField(field, 'is no uuid, and its column takes nothing else', at)
      return text.toLowerCase()
    }
  }
  const bits = INTEGER_BITS[type]
  if (bits !== undefined) {
    return (text, at) => {
      // Without leading zeros: the column must give the same text back.
      const fits = /^(0|-?[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(bits, BigInt(text)) === BigInt(text)
      if (!fits) refuseField(field, `is no whole number that a column of ${type} takes`, at)
      return text
    }
  }
  const most = Number(/^character(?: varying)?\((\d+)\)$/.exec(type)?.[1] ?? Number.POSITIVE_INFINITY)
  return (text, at) => {
    // Characters, not code units; counted only when the code units do not fit.
    if (text.length > most && Array.from(text).length > most)
      refuseField(field, `is longer than the ${most} characters that its column takes`, at)
    return text
  }
}

/**
 * Uuids of version 7 for tables whose database makes no ids. Each is greater than the one before, so rows of one moment
 * keep their order.
 */
function rowIds(clock: Clock): () => string {
  // Milliseconds since 1970 and 4,096 parts of one: the first 60 bits that can be chosen.
  let last = 0n
  return () => {
    const us = clock.now()
    const present = ((us / 1_000n) << 12n) | (((us % 1_000n) << 12n) / 1_000n)
    last = present > last ? present : last + 1n
    const hex = last.toString(16).padStart(15, '0')
    // The tail of a random uuid fits here.
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(12)}-${randomUUID().slice(19)}`
  }
}

/** Bytes where the column keeps bytes, else a text. */
function payloadFitter(layout: Layout): (content: Content, at: Place) => Buffer | string {
  if (layout.keepsBytes)
    return (content) => (content.kind === 'bytes' ? content.bytes : Buffer.from(content.text, 'utf8'))
  const isPostgres = layout.dialect === 'postgres'
  const isJson = layout.keepsJson
  const type = layout.types.payload
  return (content, at) => {
    const text = content.kind === 'bytes' ? decode(content.bytes, at) : content.text
    if (isPostgres && text.includes('\0'))
      refusePayload(`holds U+0000, which a column of ${type} cannot keep`, at)
    if (isJson) {
      const reason = content.kind === 'json' ? null : jsonProblem(text)
      if (reason !== null) refusePayload(`is not JSON, and its column takes nothing else: ${reason}`, at)
      const problem = columnProblem(text, type === 'jsonb' ? 'jsonb' : 'json')
      if (problem !== undefined) refusePayload(problem, at)
    }
    return text
  }
}

function decode(bytes: Buffer, at: Place): string {
  if (!isUtf8(bytes)) refusePayload('is not UTF-8, and its column keeps text', at)
  return bytes.toString('utf8')
}

/** PostgreSQL reads JSON recursively: with its usual stack it ended between 10,000 and 20,000 levels. */
const MOST_LEVELS = 5_000
/** Limits of `numeric`. */
const MOST_WHOLE_DIGITS = 131_072
const MOST_FRACTION_DIGITS = 16_383

/**
 * Why PostgreSQL cannot keep this JSON: nesting beyond its stack, and in `jsonb` U+0000, halves of characters and
 * numbers beyond `numeric`. One pass over a text that is known to be JSON; undefined when it can.
 */
export function columnProblem(text: string, type: 'json' | 'jsonb'): string | undefined {
  let depth = 0
  for (let at = skipSpace(text, 0), end = 0; at < text.length; at = skipSpace(text, end)) {
    end = tokenEnd(text, at)
    const code = text.charCodeAt(at)
    if (isOpening(code)) {
      if (++depth > MOST_LEVELS) return `is nested deeper than ${MOST_LEVELS} levels`
    } else if (isClosing(code)) depth--
    else if (type === 'jsonb') {
      // Most are too short for any limit.
      const isShort = end - at < (isQuote(code) ? SHORTEST_ESCAPE : SHORTEST_EXPONENT)
      const problem = isShort ? undefined : valueProblem(text.slice(at, end))
      if (problem !== undefined) return problem
    }
  }
  return undefined
}

/** `"\u0000"` and `1e999`: shorter tokens have no problem. */
const SHORTEST_ESCAPE = 8
const SHORTEST_EXPONENT = 5

const valueProblem = (written: string): string | undefined =>
  written.startsWith('"') ? stringProblem(written) : numberProblem(written)

const ESCAPE = /\\(?:u([\da-fA-F]{4})|.)/g

function stringProblem(string: string): string | undefined {
  if (!string.includes('\\u')) return undefined
  const decoded = string.replace(ESCAPE, (_, hex?: string) =>
    hex === undefined ? ' ' : String.fromCharCode(Number.parseInt(hex, 16)),
  )
  if (decoded.includes('\0')) return 'holds U+0000, which a column of jsonb cannot keep'
  if (!decoded.isWellFormed())
    return 'holds half a character (a lone surrogate), which a column of jsonb cannot keep'
  return undefined
}

function numberProblem(number: string): string | undefined {
  const [mantissa = '', exponent = '0'] = number.replace(/^-/, '').split(/[eE]/)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = Number(exponent)
  const isKept = whole.length + shift <= MOST_WHOLE_DIGITS && fraction.length - shift <= MOST_FRACTION_DIGITS
  return isKept ? undefined : 'holds a number beyond what a column of jsonb can keep'
}
