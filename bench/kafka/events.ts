/** Dead events as a service writes them: about 1 KB of JSON, eight headers. */
import { randomUUID } from 'node:crypto'
import type { TestRecord } from '../../test/world/kafka/topics.ts'

export const SERVICE = 'bench'
const ERRORS = ['ValueError', 'KeyError', 'TimeoutError', 'IntegrityError'] as const
const filling = 'x'.repeat(950)

/** The n-th dead event. */
export const deadEvent = (n: number): TestRecord => ({
  key: `order-${n % 5_000}`,
  value: `{"n": ${n}, "filling": "${filling}"}`,
  headers: [
    ['exc_class', ERRORS[n % ERRORS.length] ?? ''],
    ['exc_msg', `order ${n} is not there`],
    ['original_topic', 'orders'],
    ['original_event_id', randomUUID()],
    ['service', SERVICE],
    ['type', 'upserted'],
    ['event_id', randomUUID()],
    ['correlation_id', randomUUID()],
  ],
})

/** So many of them, from the `from`-th on. */
export const deadEvents = (from: number, count: number): TestRecord[] =>
  Array.from({ length: count }, (_, i) => deadEvent(from + i))
