/**
 * Deliveries: messages that were claimed are held and delivered, some at a time; what comes of each is
 * settled. A message that is not delivered holds back those behind it in its line.
 */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { PermanentError } from '../../../core/thrown.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import type { ClaimedMessage } from '../table/message.ts'
import { ClaimLost, isLocal, type LocalTransport, type Transport } from '../transports/transport.ts'
import type { DispatcherContext } from './dispatcher.ts'
import type { Held } from './held.ts'
import type { DispatcherSettings } from './options.ts'
import { delayAfter, errorText } from './options.ts'
import { GIVEN_BACK, type Outcome, PARKED, type Settling } from './settling.ts'

/** Claims without an end that a message survives. */
export const mostClaims = ({ maxRetries }: DispatcherSettings): number => maxRetries + 2

export class Deliveries {
  readonly #context: DispatcherContext
  readonly #settling: Settling
  #active = 0
  #stopping = false

  constructor(context: DispatcherContext, settling: Settling) {
    this.#context = context
    this.#settling = settling
  }

  /** How many go on. */
  get active(): number {
    return this.#active
  }

  /** Holds messages, and begins to deliver them. Rejects when they cannot be, because the store is away. */
  async take(messages: readonly ClaimedMessage[], claimedUntil: Instant): Promise<void> {
    const { held, say, settings, transport } = this.#context
    const deliverable: Held[] = []
    for (const message of messages) {
      const known = held.get(message.id)
      if (known !== undefined) {
        // Its claim had lapsed while the store was away, and is ours again; or it was settled, and that is not known yet.
        known.claimedUntil = claimedUntil
        known.isClaimedAgain = known.isOver
      } else if (message.alreadyProcessed) {
        say('SKIP_PROCESSED', { id: message.id })
        this.#settling.settle(held.keep(message, claimedUntil), { kind: 'processed' })
      } else if (message.claims > mostClaims(settings)) {
        this.#giveUp(held.keep(message, claimedUntil), new PoisonMessage(message), 0)
      } else if (isLocal(transport)) deliverable.push(held.keep(message, claimedUntil))
      else held.add(message, claimedUntil)
    }
    if (!isLocal(transport)) this.#deliverMore(transport)
    else if (deliverable.length > 0) await this.#transferOrGiveBack(transport, deliverable)
  }

  /** Begins nothing more. */
  stop(): void {
    this.#stopping = true
  }

  /** Gives back what was not begun. */
  giveBack(): void {
    for (const held of this.#context.held.takeWaiting()) this.#settling.settle(held, GIVEN_BACK)
  }

  /** Ends what goes on and gives it back: the receiver may or may not have it. */
  cutShort(): void {
    for (const held of this.#context.held.values()) held.cutShort?.(new Stopped('the dispatcher was stopped'))
  }

  #deliverMore(transport: Transport): void {
    const { held, settings, clock } = this.#context
    while (this.#active < settings.concurrency && !this.#stopping) {
      const next = held.next()
      if (next === undefined) return
      if (clock.now() >= next.claimedUntil) this.#breakOff(next, GIVEN_BACK)
      else {
        this.#active += 1
        void this.#deliver(transport, next)
      }
    }
  }

  #delivered(transport: Transport): void {
    this.#active -= 1
    this.#deliverMore(transport)
    // Who waits for anything else is told when the outcome is written.
    if (this.#active === 0) this.#context.changes.notify()
  }

  async #deliver(transport: Transport, held: Held): Promise<void> {
    const { clock, settings, meter } = this.#context
    const startedMs = performance.now()
    const ends = new AbortController()
    held.deliverBy = later(clock.now(), microseconds(settings.deliveryTimeoutSeconds))
    try {
      await new Promise<void>((resolve, reject) => {
        held.cutShort = (reason) => {
          reject(reason)
          ends.abort(reason)
        }
        // Functions of applications may give something else than a promise.
        Promise.resolve(transport.deliver(held.message, ends.signal)).then(resolve, reject)
      })
      meter.dispatched((performance.now() - startedMs) / 1_000)
      this.#settling.settle(held, { kind: 'processed' })
      this.#context.held.passed(held)
    } catch (caught) {
      const thrown = legible(caught)
      // Where the claim is still ours, giving the message back says that it did not end this dispatcher.
      if (thrown instanceof ClaimLost || thrown instanceof Stopped) this.#breakOff(held, GIVEN_BACK)
      else {
        meter.failed((performance.now() - startedMs) / 1_000)
        this.#failed(held, thrown)
      }
    }
    held.cutShort = null
    this.#delivered(transport)
  }

  #failed(held: Held, thrown: unknown): void {
    const { settings, clock } = this.#context
    const { retryCount } = held.message
    if (thrown instanceof PermanentError || retryCount >= settings.maxRetries) {
      this.#giveUp(held, thrown, 1)
      return
    }
    const delayMs = delayAfter(thrown, settings, retryCount)
    this.#breakOff(held, {
      kind: 'failed',
      error: errorText(thrown, settings.maxErrorTextLength),
      nextAttemptAt: later(clock.now(), BigInt(delayMs) * 1_000n),
    })
  }

  #giveUp(held: Held, reason: unknown, failures: 0 | 1): void {
    const { onDead, maxErrorTextLength } = this.#context.settings
    const outcome = { kind: 'dead', error: errorText(reason, maxErrorTextLength), failures } as const
    if (onDead === 'hold') this.#breakOff(held, outcome)
    else {
      this.#settling.settle(held, outcome)
      this.#context.held.passed(held)
    }
  }

  /** Settles a message that was not delivered; what stands behind it in its line goes back, to wait for it. */
  #breakOff(held: Held, outcome: Outcome): void {
    const then = outcome.kind === 'released' ? outcome : PARKED
    for (const behind of this.#context.held.broken(held)) this.#settling.settle(behind, then)
    this.#settling.settle(held, outcome)
  }

  async #transferOrGiveBack(transport: LocalTransport, batch: readonly Held[]): Promise<void> {
    try {
      await this.#transfer(transport, batch)
    } catch (error) {
      const isOurs = (each: Held) => this.#context.held.get(each.message.id) === each && !each.isOver
      for (const each of batch.filter(isOurs)) this.#settling.settle(each, GIVEN_BACK)
      throw error
    }
  }

  /** Puts messages where they belong; one by one when that fails for all of them together. */
  async #transfer(transport: LocalTransport, batch: readonly Held[]): Promise<void> {
    if ((await this.#transferred(transport, batch)) === null) return
    const stuck = new Map<string, Outcome>()
    for (const held of batch) {
      const before = held.line === null ? undefined : stuck.get(held.line)
      const thrown = before === undefined ? await this.#transferred(transport, [held]) : null
      if (before !== undefined) this.#settling.settle(held, before)
      if (thrown === null) continue
      const isLost = thrown instanceof ClaimLost
      if (isLost) this.#settling.settle(held, GIVEN_BACK)
      else this.#failed(held, thrown)
      if (held.line !== null) stuck.set(held.line, isLost ? GIVEN_BACK : PARKED)
    }
  }

  /** Puts messages where they belong and settles them, in one transaction; gives what was thrown, or null. */
  async #transferred(transport: LocalTransport, batch: readonly Held[]): Promise<unknown> {
    const { meter, clock, claimedBy } = this.#context
    const startedMs = performance.now()
    const settlements = batch.map(({ message }) => ({ kind: 'processed', id: message.id }) as const)
    const messages = batch.map(({ message }) => message)
    try {
      const table = await this.#context.table()
      const settled = await transport.transfer(messages, async (tx) => {
        const result = await table.settle(tx, settlements, claimedBy, clock.now())
        if (result.written.size < batch.length) throw new ClaimLost('another dispatcher has the message')
        return result
      })
      const eachSeconds = (performance.now() - startedMs) / 1_000 / batch.length
      for (const _ of batch) meter.dispatched(eachSeconds)
      this.#settling.written(settlements, settled)
      return null
    } catch (thrown) {
      // No fault of the messages.
      if (thrown instanceof StoreUnavailable) throw thrown
      if (batch.length === 1) meter.failed((performance.now() - startedMs) / 1_000)
      return thrown
    }
  }
}

/** The dispatcher was stopped while a delivery went on. */
class Stopped extends Error {
  override readonly name = 'Stopped'
}

/** Why a message is dead that was claimed again and again and never settled. */
class PoisonMessage extends Error {
  override readonly name = 'PoisonMessage'

  constructor({ claims }: ClaimedMessage) {
    super(`it was claimed ${claims - 1} times and never settled; delivering it seems to end the dispatcher`)
  }
}

/** What was thrown; or an error in place of something that cannot even be asked what it is, such as a revoked proxy. */
function legible(thrown: unknown): unknown {
  try {
    if (thrown instanceof Error) return thrown
  } catch {
    return new Error('something was thrown that cannot be read')
  }
  return thrown
}
