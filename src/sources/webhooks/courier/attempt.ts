/**
 * One attempt to deliver a job: a POST whose status decides. The worker's time limit covers all of it: look-up, connecting, sending,
 * waiting.
 */
import type { Clock } from '../../../core/clock.ts'
import { describeError } from '../../../core/thrown.ts'
import type { Xid } from '../../../core/xid.ts'
import type { Origins } from '../../../outgoing/connections.ts'
import { AddressRefused } from '../../../outgoing/connector.ts'
import {
  type Answer,
  excerptOf,
  isSuccess,
  phrase,
  post,
  redirection,
  target,
} from '../../../outgoing/exchange.ts'
import type { WebhookSettings } from '../settings.ts'
import { callbackHeaders } from './callback-headers.ts'
import type { ClaimedJob, Receiver } from './claim.ts'
import type { Content } from './contents.ts'

/** As the job's case file keeps it. */
export interface AttemptFailure {
  readonly outcome: 'http_error' | 'network' | 'timeout'
  readonly errorClass: string
  /** Without queries, tokens, credentials and payloads. */
  readonly errorMessage: string
}

/** `cut`: ended from this side, or never begun; it says nothing about the consumer. */
export type AttemptResult = { readonly outcome: 'success' } | AttemptFailure | { readonly outcome: 'cut' }

interface AttemptTerms {
  readonly clock: Clock
  readonly delivery: WebhookSettings['delivery']
  readonly origins: Origins
  readonly requestId: Xid
  /** With `AttemptTimedOut` when it took too long. */
  readonly signal: AbortSignal
}

/** Of a failure's body. */
const MOST_CHARACTERS = 200
/** Forwarded headers may hold secrets; shorter ones would be found in anything. */
const LEAST_SECRET = 8

export class AttemptTimedOut extends Error {
  override readonly name = 'Timeout'
}

interface Place {
  readonly address: URL
  readonly origin: string
  /** With the query. */
  readonly path: string
  /** How errors name it. */
  readonly target: string
}

/** Reading an address takes longer than all else that is done with it. */
const places = new WeakMap<Receiver, Place>()

function placeOf(receiver: Receiver): Place | null {
  const known = places.get(receiver)
  if (known !== undefined) return known
  const address = URL.parse(receiver.callbackUrl)
  if (address === null) return null
  const { origin, pathname, search } = address
  const place = { address, origin, path: pathname + search, target: target(address) }
  places.set(receiver, place)
  return place
}

/** Never rejects. */
export async function attempt(
  job: ClaimedJob,
  content: Content,
  terms: AttemptTerms,
): Promise<AttemptResult> {
  const { delivery, signal } = terms
  const place = placeOf(job.receiver)
  if (place === null) return failed('network', 'InvalidAddress', 'the callback URL cannot be read')
  try {
    return judged(await send(job, content, place, terms), place.address, job.receiver, content)
  } catch (error) {
    const reason: unknown = signal.reason
    if (reason instanceof AttemptTimedOut)
      return failed(
        'timeout',
        reason.name,
        `${place.target} got no answer within ${delivery.timeoutSeconds} s`,
      )
    return signal.aborted ? { outcome: 'cut' } : broken(error)
  }
}

function send(
  job: ClaimedJob,
  content: Content,
  { address, origin, path, target }: Place,
  { clock, delivery, origins, requestId, signal }: AttemptTerms,
): Promise<Answer> {
  const headers = callbackHeaders(job, content, { requestId, now: clock.now(), address, delivery })
  const posting = { path, headers, body: content.payload }
  return post(origins.to(origin), posting, { target, clock, timeoutSeconds: null, signal })
}

function judged(answer: Answer, address: URL, receiver: Receiver, content: Content): AttemptResult {
  const { status } = answer
  if (isSuccess(status)) return { outcome: 'success' }
  const said = `${phrase(status)}${redirection(answer, address)}${saidBeside(answer, receiver, content)}`
  return failed('http_error', 'HttpStatus', `${target(address)} answered ${said}`)
}

/** Cut at the end: the beginning of a secret is one too. */
function saidBeside(answer: Answer, { token, secrets }: Receiver, { headers, payload }: Content): string {
  const values = headers.map(([, value]) => value).filter((value) => value.length >= LEAST_SECRET)
  const said = withoutEcho(
    excerptOf(answer, Number.POSITIVE_INFINITY),
    [token, ...secrets, ...values],
    payload,
  )
  return said.length <= MOST_CHARACTERS ? said : `${said.slice(0, MOST_CHARACTERS).toWellFormed()}…`
}

function broken(error: unknown): AttemptFailure {
  const { errorMessage } = describeError(error)
  const cause = error instanceof Error ? error.cause : undefined
  return failed('network', cause instanceof AddressRefused ? cause.name : 'NetworkError', errorMessage)
}

const failed = (
  outcome: AttemptFailure['outcome'],
  errorClass: string,
  errorMessage: string,
): AttemptFailure => ({ outcome, errorClass, errorMessage })

const HIDDEN = '[…]'

/** Runs of twice this length are always found, shorter ones never: names of fields stay. */
const RUN = 16
/** A payload as short as a word would be found in anything. */
const LEAST_PAYLOAD = 6
/** An echo is mostly the beginning. */
const MOST_PAYLOAD_BYTES = 65_536

/** Line ends, controls and the invisible: both sides are compared in one line. */
const UNSEEN = /[\s\p{C}]+/gu

/**
 * The answer without what was sent. Failing receivers echo, and answers are shown more widely than tokens and payloads may be: secrets go
 * wherever they stand, payloads whole or in long runs.
 */
export function withoutEcho(said: string, secrets: readonly string[], payload: Uint8Array): string {
  let rest = said
  for (const secret of secrets) if (secret !== '') rest = rest.replaceAll(secret, HIDDEN)
  const sent = new TextDecoder().decode(payload.subarray(0, MOST_PAYLOAD_BYTES)).replace(UNSEEN, ' ').trim()
  if (sent.length >= LEAST_PAYLOAD) rest = rest.replaceAll(sent, HIDDEN)
  return withoutRuns(rest, sent)
}

function withoutRuns(said: string, sent: string): string {
  let kept = ''
  let from = 0
  for (let at = 0; at + RUN <= said.length; ) {
    const found = sent.indexOf(said.slice(at, at + RUN))
    if (found < 0) {
      at += RUN
      continue
    }
    let start = at
    for (let i = found; start > from && i > 0 && said[start - 1] === sent[i - 1]; i--) start -= 1
    let end = at + RUN
    for (let i = found + RUN; end < said.length && i < sent.length && said[end] === sent[i]; i++) end += 1
    kept += said.slice(from, start) + HIDDEN
    from = end
    at = end
  }
  return kept + said.slice(from)
}
