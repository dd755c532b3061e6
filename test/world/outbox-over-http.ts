/** For tests only: receivers and transports to them, closed after each test. The clock of the transports stands still. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { afterEach } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { type HttpTransportOptions, httpTransport } from '../../src/sources/outbox/transports/http.ts'
import type { Transport } from '../../src/sources/outbox/transports/transport.ts'
import { httpReceiver, type Receiver, rawReceiver } from './stub-receiver.ts'

/** The signal of a delivery that nobody breaks off. */
export const NEVER = new AbortController().signal

const receivers: Receiver[] = []
const transports: Transport[] = []

/** Call it once in a file: closes what its tests have opened. */
export function closeAfterEach(): void {
  afterEach(async () => {
    await Promise.all(transports.splice(0).map((transport) => transport.close?.()))
    await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
  })
}

/** Friday, 15 January 2027, 08:00:00 GMT. */
export function frozen(): TestClock {
  const clock = new TestClock()
  clock.freeze(instant(1_800_000_000_000_000n))
  return clock
}

export async function receiving(answer: (response: ServerResponse) => void): Promise<Receiver> {
  const receiver = await httpReceiver(answer)
  receivers.push(receiver)
  return receiver
}

export async function receivingRaw(answer: (socket: Socket) => void): Promise<Receiver> {
  const receiver = await rawReceiver(answer)
  receivers.push(receiver)
  return receiver
}

export const answering = (
  status: number,
  headers: Record<string, string> = {},
  body = '',
): Promise<Receiver> => receiving((response) => response.writeHead(status, headers).end(body))

export function to(receiver: Receiver, options: Partial<HttpTransportOptions> = {}): Transport {
  const transport = httpTransport({ url: receiver.url(), clock: frozen(), ...options })
  transports.push(transport)
  return transport
}

/** What a delivery throws, or `nothing`. */
export const thrownBy = (delivery: Promise<void>): Promise<unknown> =>
  delivery.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )

export const textOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))
