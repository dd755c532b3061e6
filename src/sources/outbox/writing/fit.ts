/** Drafts as rows of a particular table: whether its columns can hold them, and the values they get. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../core/clock.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import type { Layout } from '../table/layout.ts'
import type { ColumnName } from '../table/table-names.ts'
import { type Draft, isUuid } from './draft.ts'
import { type Place, payloadFitter, refuseField } from './payload.ts'

/** A row to be inserted. */
export interface NewRow extends Omit<Draft, 'content'> {
  /** Null where the database makes one. */
  readonly id: string | null
  readonly payload: Buffer | string
}

/** Makes a row of a draft; refuses what the table cannot hold. `at` is the message's place among others. */
export type Fitter = (draft: Draft, at: Place) => NewRow

const INTEGER_BITS: Readonly<Record<string, number>> = { smallint: 16, integer: 32, bigint: 64 }

const UUID_LENGTH = 36

/** Whether the ids of a table are ours to make: producers make uuids themselves, and databases count up numbers. */
export function makesIds({ types }: Layout): boolean {
  const length = Number(/\((\d+)\)/.exec(types.id)?.[1] ?? UUID_LENGTH)
  return /uuid|guid|char|text|clob/.test(types.id) && length >= UUID_LENGTH
}

/** How drafts become rows of a table. */
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

/** The text as the column keeps it. */
type TextFitter = (text: string, at: Place) => string

/** SQLite takes any text anywhere; PostgreSQL fails on one that does not suit the type. */
function textFitter({ dialect, types }: Layout, column: ColumnName, field: string = column): TextFitter {
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
      // Without leading zeros: the text must be the one that the column gives back.
      const fits = /^(0|-?[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(bits, BigInt(text)) === BigInt(text)
      if (!fits) refuseField(field, `is no whole number that a column of ${type} takes`, at)
      return text
    }
  }
  const most = Number(/^character(?: varying)?\((\d+)\)$/.exec(type)?.[1] ?? Number.POSITIVE_INFINITY)
  return (text, at) => {
    // Characters, not code units; the shorter count is only taken when the longer one does not fit.
    if (text.length > most && Array.from(text).length > most)
      refuseField(field, `is longer than the ${most} characters that its column takes`, at)
    return text
  }
}

/**
 * Ids for tables whose database makes none: uuids of version 7. Each is greater than the one before, so that rows written in the
 * same moment keep their order.
 */
function rowIds(clock: Clock): () => string {
  // Milliseconds since 1970 and 4,096 parts of one: the first 60 bits that can be chosen.
  let last = 0n
  return () => {
    const us = clock.now()
    const present = ((us / 1_000n) << 12n) | (((us % 1_000n) << 12n) / 1_000n)
    last = present > last ? present : last + 1n
    const hex = last.toString(16).padStart(15, '0')
    // A random uuid ends with what this one needs behind the time.
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(12)}-${randomUUID().slice(19)}`
  }
}
