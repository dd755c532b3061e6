/** Redrives as the API shows them. */
import { isUtf8 } from 'node:buffer'
import { viewOf } from '../api/view.ts'
import { type Instant, instant } from '../core/clock.ts'
import { showBytes } from '../core/content.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { LetterFilter } from '../letters/lists/filter.ts'
import { measuredRate } from '../work/view.ts'
import type {
  Destination,
  Member,
  RedriveDetail,
  RedriveStanding,
  SampleLetter,
  Selection,
} from './redrive.ts'
import { showRecipe } from './repair/recipe.ts'
import { remainingOf } from './rows/lanes.ts'
import { redriveSentence } from './sentence.ts'
import {
  COUNTS,
  DESTINATION,
  MAX_SHOWN_PAYLOAD,
  MEMBER,
  NEWS,
  PLAN_NUMBERS,
  REDRIVE,
  REDRIVE_DETAIL,
  type RedriveItem,
  type RedriveLetter,
  type RedriveSample,
  SAMPLE,
  type RedriveDetail as ShownDetail,
} from './shapes.ts'

const itemOnWire = viewOf(REDRIVE)
const detailOnWire = viewOf(REDRIVE_DETAIL)
const newsOnWire = viewOf(NEWS)
const countsOnWire = viewOf(COUNTS)
const numbersOnWire = viewOf(PLAN_NUMBERS)
const destinationOnWire = viewOf(DESTINATION)
const sampleOnWire = viewOf(SAMPLE)
const memberOnWire = viewOf(MEMBER)

export const redriveFields = (redrive: RedriveStanding, now: Instant): RedriveItem =>
  itemOnWire(seenAt(redrive, now, []))

export const redriveDetail = (redrive: RedriveDetail, now: Instant): ShownDetail =>
  detailOnWire({
    ...seenAt(redrive, now, redrive.destinations),
    destinations: redrive.destinations.map((destination) =>
      destinationOnWire({ ...destination, remaining: remainingOf(destination) }),
    ),
    exceptions: redrive.exceptions,
    sample: redrive.sample.map(sampleFields),
  })

export const redriveNews = (redrive: RedriveStanding) =>
  newsOnWire({
    ...redrive,
    sentence: redriveSentence(redrive),
    counts: countsOnWire(redrive.counts),
    rateNow: measuredRate(redrive.rateNow),
  })

const seenAt = (redrive: RedriveStanding, now: Instant, destinations: readonly Destination[]) => ({
  ...redrive,
  ...redrive.terms,
  ...selectionFields(redrive.selection),
  sentence: redriveSentence(redrive, destinations),
  counts: countsOnWire(redrive.counts),
  numbers: numbersOnWire(redrive.numbers),
  repair: redrive.recipe === null ? null : showRecipe(redrive.recipe),
  isExpired: redrive.state === 'planned' && now >= redrive.validUntil,
  rateNow: measuredRate(redrive.rateNow),
})

/** Of named letters only how many: they have a call of their own. */
const selectionFields = (selection: Selection) =>
  selection.by === 'ids'
    ? { filter: null, ids: selection.ids.length }
    : { filter: filterFields(selection.filter), ids: null }

/** In a form that can be given again. */
const filterFields = (filter: LetterFilter) =>
  Object.fromEntries(
    Object.entries(filter)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, typeof value === 'bigint' ? formatMicros(instant(value)) : value]),
  )

function sampleFields({ key, outgoing, before, ...letter }: SampleLetter): RedriveSample {
  return sampleOnWire({
    ...{ queue: null, encoding: null, kind: null, reference: null },
    ...letter,
    ...key,
    ...outgoing,
    ...(outgoing === null ? NOTHING : payloadStart(outgoing.payload)),
    before: before === null ? null : payloadStart(before.payload),
  })
}

/** For a letter that does not leave. */
const NOTHING = { payload: null, payloadEncoding: null, payloadTruncated: false }

/** The payload as far as it is shown, as text if all of it is text, and then without half a character. */
function payloadStart(bytes: Uint8Array): NonNullable<RedriveSample['before']> {
  if (bytes.length <= MAX_SHOWN_PAYLOAD) {
    const { text, encoding } = showBytes(bytes)
    return { payload: text, payloadEncoding: encoding, payloadTruncated: false }
  }
  const payloadEncoding = isUtf8(bytes) ? 'utf8' : 'base64'
  const start = bytes.subarray(0, payloadEncoding === 'utf8' ? characterStart(bytes) : MAX_SHOWN_PAYLOAD)
  return { payload: Buffer.from(start).toString(payloadEncoding), payloadEncoding, payloadTruncated: true }
}

/** The start of the character that the limit falls into. */
function characterStart(bytes: Uint8Array): number {
  let at = MAX_SHOWN_PAYLOAD
  // The bytes of a character after its first are 10xxxxxx.
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1
  return at
}

export const memberFields = ({ key, ...member }: Member): RedriveLetter =>
  memberOnWire({ ...member, ...(key ?? { engine: null, rowKey: null }) })
