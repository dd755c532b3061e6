/**
 * What the loaded letters look like: twenty places that they come from, two hundred errors, three statuses, payloads of
 * 140 bytes. Which of them a letter has follows from its number, so that any part of the load can be told in advance.
 */
import { type Signature, signatureOf } from '../../src/core/signature.ts'

/** Where letters come from. */
export interface Place {
  readonly source: 'queues' | 'engines' | 'http'
  readonly engine: string
  /** '' when there is none. */
  readonly queue: string
}

const twoDigits = (n: number): string => String(n).padStart(2, '0')

const places: readonly Place[] = [
  ...Array.from(
    { length: 10 },
    (_, n): Place => ({
      source: 'queues',
      engine: 'queues',
      queue: `orders-${twoDigits(n)}`,
    }),
  ),
  { source: 'engines', engine: 'provisioning', queue: 'webhook-queue' },
  { source: 'engines', engine: 'hmac', queue: 'hmac-rotation-queue' },
  { source: 'engines', engine: 'tls', queue: 'tls-rotation-queue' },
  { source: 'engines', engine: 'spn', queue: 'spn-rotation-queue' },
  { source: 'engines', engine: 'alerts', queue: 'monitor-alerts-queue' },
  { source: 'engines', engine: 'update-publisher', queue: '' },
  ...Array.from(
    { length: 4 },
    (_, n): Place => ({
      source: 'http',
      engine: 'http',
      queue: `partner-${twoDigits(n)}`,
    }),
  ),
]

/** Where the letters of the queues lie while they are pending. */
export const deadQueue = 'orders-dead'

/** The text of an error, with the letter's number between its two halves. */
interface ErrorText {
  readonly errorClass: string
  readonly before: string
  readonly after: string
}

const errorClasses = ['TimeoutError', 'TypeError', 'RangeError', 'ConnectionError', 'ValidationError']
const subjects = [
  'invoice',
  'shipment',
  'certificate',
  'subscription',
  'payment',
  'refund',
  'tenant',
  'webhook',
]
const troubles = [
  'did not answer within 30000 ms',
  'has a currency that is not known',
  'was refused by the upstream gateway',
  'is locked by another transaction',
  'has no recipient address',
]

const signatureCount = errorClasses.length * subjects.length * troubles.length

const errorText = (n: number): ErrorText => ({
  errorClass: errorClasses[n % errorClasses.length] ?? '',
  before: `${subjects[Math.floor(n / errorClasses.length) % subjects.length]} `,
  after: ` ${troubles[Math.floor(n / (errorClasses.length * subjects.length)) % troubles.length]}`,
})

/** A word of many letters' texts, of five letters', of none's. */
export const words = { common: 'upstream gateway', rare: 'heliotrope', none: 'xylophone' } as const

const rareError: ErrorText = {
  errorClass: 'OddError',
  before: `${words.rare} `,
  after: ' was found in the mail',
}

/** A place together with an error: what a drawer stands for. */
export interface Kind extends ErrorText {
  readonly place: Place
  readonly signature: Signature
}

const kind = (place: Place, error: ErrorText): Kind => ({
  ...error,
  place,
  signature: signatureOf({
    errorClass: error.errorClass,
    errorMessage: `${error.before}1${error.after}`,
    errorStack: null,
  }),
})

/** Every letter of a load is of one of these kinds; the last of them is rare. */
export interface Mix {
  readonly kinds: readonly Kind[]
  /** Left out: 60%, and three quarters of the others are resolved. */
  readonly areAllPending?: boolean
  /** How many instances the letters have that do not come from plain queues. */
  readonly instances: number
}

const placeAt = (n: number): Place =>
  places[n % places.length] ?? { source: 'http', engine: 'http', queue: '' }

/** Every error occurs at two places; the last kind is the rare one. */
export const kinds: readonly Kind[] = [
  ...Array.from({ length: 2 * signatureCount }, (_, n) =>
    kind(placeAt(n + Math.floor(n / signatureCount)), errorText(n % signatureCount)),
  ),
  kind(placeAt(11), rareError),
]

/** Years of work at all places. */
export const usualMix: Mix = { kinds, instances: 500 }

/** Letters of one place that all wait to be sent back, with twenty errors. */
export const pendingMix = (place: Place, instances: number): Mix => ({
  kinds: [...Array.from({ length: 20 }, (_, n) => kind(place, errorText(n))), kind(place, rareError)],
  areAllPending: true,
  instances,
})

/** How many letters are of the rare kind, whatever the size of the load. */
export const rareLetters = 5

/** The letters lie this far back, evenly; the newest is from just now. */
export const spanUs = 85n * 86_400_000_000n
