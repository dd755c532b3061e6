/** A redrive in one sentence, the same wherever it is shown: what it will do, does or did. */
import { placeOf } from './planning/destinations.ts'
import type { Destination, PlanNumbers, RedriveAction, RedriveCounts, RedriveStanding } from './redrive.ts'
import { isSending } from './redrive.ts'

/** Words before the letters, and after them: "Send 5 letters back to orders". */
const VERBS = {
  retry: { will: 'Send', does: 'Sending', did: 'Sent', after: ' back' },
  move: { will: 'Move', does: 'Moving', did: 'Moved', after: '' },
  discard: { will: 'Discard', does: 'Discarding', did: 'Discarded', after: '' },
  restore: { will: 'Restore', does: 'Restoring', did: 'Restored', after: '' },
} as const satisfies Record<RedriveAction, object>

const throughOf = (action: RedriveAction): string => VERBS[action].did.toLowerCase()

/** Without `destinations`, which lists do not read, the sentence does not name where retries go. */
export function redriveSentence(redrive: RedriveStanding, destinations: readonly Destination[] = []): string {
  switch (redrive.state) {
    case 'planning':
      return `Being planned: ${lettersOf(redrive.numbers.matched)} looked at so far.`
    case 'planned':
      return redrive.counts.planned === 0 ? nothingToDo(redrive) : planned(redrive, destinations)
    case 'canary':
      return trying(redrive)
    case 'running':
      return running(redrive, destinations)
    case 'paused':
      return `${because('Paused', redrive.note)} ${howFar(redrive)}`
    case 'stopped':
      return `${because('Stopped', redrive.note)} ${ended(redrive)}`
    case 'cancelled':
      return `${because('Cancelled', redrive.note)} ${ended(redrive)}`
    case 'done':
      return done(redrive, destinations)
  }
}

function planned(redrive: RedriveStanding, destinations: readonly Destination[]): string {
  const { action, counts, terms } = redrive
  const verb = VERBS[action]
  const first = Math.min(terms.canary?.letters ?? 0, counts.planned)
  const conditions = [
    ...(terms.rate === null
      ? []
      : [`at most ${amount(terms.rate)} a second${toEach(redrive, destinations)}`]),
    ...(first === 0 || first === counts.planned ? [] : [`${inWords(first)} first`]),
  ]
  const halt =
    terms.stopRule !== null && isSending(action)
      ? `; stop when more than ${amount(terms.stopRule.percent)}% of ${amount(terms.stopRule.of)} come back`
      : ''
  const act = `${verb.will} ${lettersOf(counts.planned)}${verb.after}${whereTo(redrive, destinations)}`
  return `${[act, ...conditions].join(', ')}${halt}.`
}

function nothingToDo({ action, numbers }: RedriveStanding): string {
  const { matched } = numbers
  if (matched === 0) return 'No letter matches; there is nothing to do.'
  const [first, ...others] = obstacles(action, numbers)
  if (first === undefined) return 'Nothing to do.'
  if (matched === 1) return `Nothing to do: the letter ${first.one}.`
  const reasons = [first, ...others].map(
    ({ letters, one, many }) => `${amount(letters)} ${letters === 1 ? one : many}`,
  )
  return `Nothing to do: of ${lettersOf(matched)} ${listed(reasons)}.`
}

/** Why letters are not in a plan, for one and for many. */
const obstacles = (action: RedriveAction, numbers: PlanNumbers) =>
  [
    { letters: numbers.inFlight, one: 'is in flight', many: 'are in flight' },
    { letters: numbers.noDestination, one: 'has no destination', many: 'have no destination' },
    {
      letters: numbers.orderBlocked,
      one: 'waits for an earlier one of its key',
      many: 'wait for an earlier one of their key',
    },
    { letters: numbers.duplicate, one: 'is named more than once', many: 'are named more than once' },
    { letters: numbers.invalid, one: cannot(action), many: cannot(action) },
  ].filter(({ letters }) => letters > 0)

const cannot = (action: RedriveAction): string => `cannot be ${throughOf(action)}${VERBS[action].after}`

function trying({ counts, terms }: RedriveStanding): string {
  const first = Math.min(terms.canary?.letters ?? counts.planned, counts.planned)
  const heard = [...outcomes(counts), ...leftOut(counts)]
  return `Trying ${lettersOf(first)} first: ${heard.length === 0 ? 'none sent yet' : heard.join(', ')}.`
}

function running(redrive: RedriveStanding, destinations: readonly Destination[]): string {
  const { action, counts } = redrive
  const verb = VERBS[action]
  const act = `${verb.does} ${lettersOf(counts.planned)}${verb.after}${whereTo(redrive, destinations)}`
  const parts = [`${amount(counts.sent)} ${throughOf(action)}`, ...leftOut(counts), toGo(counts)]
  return `${act}: ${parts.join(', ')}.`
}

const howFar = ({ action, counts }: RedriveStanding): string =>
  `${[howMany(action, counts), ...leftOut(counts), toGo(counts)].join(', ')}.`

const ended = (redrive: RedriveStanding): string =>
  redrive.startedAt === null ? 'It was not started.' : howItEnded(redrive)

function howItEnded({ action, counts }: RedriveStanding): string {
  const heard = isSending(action) ? outcomes(counts) : []
  const through = howMany(action, counts)
  const rest = [...leftOut(counts), ...counted([[counts.remaining, 'not touched']])].join(', ')
  const sent = heard.length === 0 ? through : `${through}: ${heard.join(', ')}`
  return rest === '' ? `${sent}.` : `${sent}; ${rest}.`
}

function done(redrive: RedriveStanding, destinations: readonly Destination[]): string {
  const { action, counts } = redrive
  const verb = VERBS[action]
  const which =
    counts.sent === counts.planned
      ? lettersOf(counts.sent)
      : `${counts.sent === 0 ? 'none' : amount(counts.sent)} of ${lettersOf(counts.planned)}`
  const act = `${verb.did} ${which}${verb.after}${whereTo(redrive, destinations)}`
  const heard = isSending(action) ? outcomes(counts) : []
  const became = [heard, leftOut(counts)].filter((part) => part.length > 0).map((part) => part.join(', '))
  return became.length === 0 ? `${act}.` : `${act}: ${became.join('; ')}.`
}

/** Outcomes of sent letters. */
const outcomes = (counts: RedriveCounts): string[] =>
  counted([
    [counts.confirmed, 'confirmed'],
    [counts.returned, 'returned'],
    [counts.unconfirmed, 'unconfirmed'],
  ])

const leftOut = (counts: RedriveCounts): string[] =>
  counted([
    [counts.skipped, 'skipped'],
    [counts.failed, 'failed'],
  ])

const counted = (parts: readonly (readonly [number, string])[]): string[] =>
  parts.filter(([letters]) => letters > 0).map(([letters, word]) => `${amount(letters)} ${word}`)

const toGo = ({ remaining }: RedriveCounts): string => `${amount(remaining)} to go`

const howMany = (action: RedriveAction, { sent, planned: all }: RedriveCounts): string =>
  `${amount(sent)} of ${lettersOf(all)} ${throughOf(action)}`

/** " to orders", " to 3 destinations", or nothing where letters do not leave or their places are unknown. */
function whereTo({ action, queue }: RedriveStanding, destinations: readonly Destination[]): string {
  if (action === 'move') return queue === null ? '' : ` to ${queue}`
  if (action !== 'retry') return ''
  const places = placesOf(destinations)
  const [only] = places
  if (only === undefined) return ''
  return places.length === 1 ? ` to ${only}` : ` to ${amount(places.length)} destinations`
}

/** The rate holds for each destination. */
const toEach = ({ action }: RedriveStanding, destinations: readonly Destination[]): string =>
  action === 'retry' && placesOf(destinations).length > 1 ? ' to each' : ''

function placesOf(destinations: readonly Destination[]): readonly string[] {
  const places = new Map(
    destinations
      .filter(({ name }) => name !== '')
      .map(({ source, name }) => [placeOf({ source, destination: name }), name]),
  )
  return [...places.values()]
}

/** A note may be a sentence, or only say who it was ("by nell"). */
function because(what: string, note: string | null): string {
  const reason = note?.trim().replace(/\.+$/, '') ?? ''
  if (reason === '') return `${what}.`
  return reason.startsWith('by ') ? `${what} ${reason}.` : `${what}: ${reason}.`
}

const SMALL = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']

const inWords = (number: number): string => SMALL[number] ?? amount(number)

const lettersOf = (letters: number): string => `${amount(letters)} ${letters === 1 ? 'letter' : 'letters'}`

const amounts = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 21 })
const amount = (number: number): string => amounts.format(number)

function listed(parts: readonly string[]): string {
  const last = parts.at(-1) ?? ''
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(', ')} and ${last}`
}
