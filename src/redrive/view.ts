/** Redrives as the API shows them: a line of a list, the whole of one, its letters, and what is said of it as it goes. */
import { isUtf8 } from 'node:buffer'
import { type Instant, instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { LetterFilter } from '../letters/lists/filter.ts'
import { showPayload } from '../letters/reports/payload.ts'
import { measuredRate, optionalTime } from '../work/view.ts'
import { redriveSentence } from './planning/sentence.ts'
import {
  COUNTS,
  type Destination,
  type Member,
  PLAN_NUMBERS,
  type RedriveDetail,
  type RedriveStanding,
  type SampleLetter,
  type Selection,
} from './redrive.ts'
import { showRecipe } from './repair/recipe.ts'
import { remainingOf } from './rows/lanes.ts'

/** What of a payload is shown in a sample, in bytes. */
export const MAX_SHOWN_PAYLOAD = 65_536

/** A redrive as lists show it. */
export const redriveFields = (redrive: RedriveStanding, now: Instant) => fieldsOf(redrive, now, [])

/** A redrive with everything on file about it. */
export const redriveDetail = (redrive: RedriveDetail, now: Instant) => ({
  ...fieldsOf(redrive, now, redrive.destinations),
  destinations: redrive.destinations.map(destinationFields),
  exceptions: redrive.exceptions.map(({ outcome, reason, letters }) => ({ outcome, reason, letters })),
  sample: redrive.sample.map(sampleFields),
})

/** What those who watch are told again and again. */
export const redriveNews = (redrive: RedriveStanding) => ({
  id: redrive.id,
  state: redrive.state,
  sentence: redriveSentence(redrive),
  action: redrive.action,
  counts: picked(COUNTS, redrive.counts),
  rateNow: measuredRate(redrive.rateNow),
  secondsLeft: redrive.secondsLeft,
  note: redrive.note,
  resumed: redrive.resumed,
})

const fieldsOf = (redrive: RedriveStanding, now: Instant, destinations: readonly Destination[]) => ({
  id: redrive.id,
  state: redrive.state,
  sentence: redriveSentence(redrive, destinations),
  action: redrive.action,
  queue: redrive.queue,
  ...selectionFields(redrive.selection),
  counts: picked(COUNTS, redrive.counts),
  numbers: picked(PLAN_NUMBERS, redrive.numbers),
  rate: redrive.terms.rate,
  canary: redrive.terms.canary,
  stopRule: redrive.terms.stopRule,
  order: redrive.terms.order,
  repair: redrive.recipe === null ? null : showRecipe(redrive.recipe),
  reason: redrive.reason,
  plannedBy: redrive.plannedBy,
  plannedAtUtc: formatMicros(redrive.plannedAt),
  validUntilUtc: formatMicros(redrive.validUntil),
  isExpired: redrive.state === 'planned' && now >= redrive.validUntil,
  startedBy: redrive.startedBy,
  startedAtUtc: optionalTime(redrive.startedAt),
  endedAtUtc: optionalTime(redrive.endedAt),
  note: redrive.note,
  resumed: redrive.resumed,
  isHeld: redrive.isHeld,
  rateNow: measuredRate(redrive.rateNow),
  secondsLeft: redrive.secondsLeft,
})

/** By their names: what else the store keeps beside them is not for the outside. */
const picked = <Name extends string>(
  names: readonly Name[],
  of: Readonly<Record<Name, number>>,
): Record<Name, number> =>
  // A record of all the names that are given.
  Object.fromEntries(names.map((name) => [name, of[name]])) as Record<Name, number>

/** Of a list of ids only how many they were: the letters themselves have a call of their own. */
const selectionFields = (selection: Selection) =>
  selection.by === 'ids'
    ? { filter: null, ids: selection.ids.length }
    : { filter: filterFields(selection.filter), ids: null }

/** As it can be given again. */
const filterFields = (filter: LetterFilter) =>
  Object.fromEntries(
    Object.entries(filter)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, typeof value === 'bigint' ? formatMicros(instant(value)) : value]),
  )

const destinationFields = ({ source, name, ...counts }: Destination) => ({
  ...{ source, name, ...counts },
  remaining: remainingOf(counts),
})

function sampleFields({ key, instanceId, errorMessage, outgoing, before, refusal }: SampleLetter) {
  const shown = outgoing === null ? null : payloadStart(outgoing.payload)
  return {
    engine: key.engine,
    rowKey: key.rowKey,
    instanceId,
    errorMessage,
    queue: outgoing?.queue ?? null,
    encoding: outgoing?.encoding ?? null,
    kind: outgoing?.kind ?? null,
    reference: outgoing?.reference ?? null,
    payload: shown?.payload ?? null,
    payloadEncoding: shown?.payloadEncoding ?? null,
    payloadTruncated: shown?.payloadTruncated ?? false,
    before: before === null ? null : payloadStart(before.payload),
    refusal,
  }
}

/** A payload as far as it is shown: text when all of it is, and then never half a character. */
function payloadStart(bytes: Uint8Array) {
  if (bytes.length <= MAX_SHOWN_PAYLOAD) {
    const { text, encoding } = showPayload(bytes)
    return { payload: text, payloadEncoding: encoding, payloadTruncated: false }
  }
  const payloadEncoding = isUtf8(bytes) ? 'utf8' : 'base64'
  const start = bytes.subarray(0, payloadEncoding === 'utf8' ? characterStart(bytes) : MAX_SHOWN_PAYLOAD)
  return { payload: Buffer.from(start).toString(payloadEncoding), payloadEncoding, payloadTruncated: true }
}

/** Where the character begins that the limit lies in. */
function characterStart(bytes: Uint8Array): number {
  let at = MAX_SHOWN_PAYLOAD
  // The bytes of a character after its first are 10xxxxxx.
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1
  return at
}

/** A letter of a redrive, and what became of it there. */
export const memberFields = ({ key, destination, outcome, reason, detail }: Member) => ({
  engine: key?.engine ?? null,
  rowKey: key?.rowKey ?? null,
  destination,
  outcome,
  reason,
  detail,
})
