/** Deliveries of an outbox over HTTP. The clock of the transports stands still. */
import { TestClock } from '../../src/core/test-clock.ts'
import { type HttpTransportOptions, httpTransport } from '../../src/sources/outbox/transports/http.ts'
import type { Transport } from '../../src/sources/outbox/transports/transport.ts'
import { closing, type Receiver } from './receiver.ts'
import { START } from './store-world.ts'

/** The signal of a delivery that nobody breaks off. */
export const NEVER = new AbortController().signal

/** Friday, 15 January 2027, 08:00:00 GMT. */
export function frozen(): TestClock {
  const clock = new TestClock()
  clock.freeze(START)
  return clock
}

/** A transport to a receiver, closed after the test. */
export const to = (receiver: Receiver, options: Partial<HttpTransportOptions> = {}): Transport =>
  closing(httpTransport({ url: receiver.hook(), clock: frozen(), ...options }))

/** What a delivery throws, or `nothing`. */
export const thrownBy = (delivery: Promise<void>): Promise<unknown> =>
  delivery.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )

export const textOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))
