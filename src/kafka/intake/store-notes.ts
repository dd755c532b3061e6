/** The death notes of records. Deaths of the same kind come in swarms: what they have in common is worked out once for all of them. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Death, type DeathNote, noteDeath, type Registers, storable } from '../../letters/death-note.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { KAFKA, SYSTEM } from '../event.ts'
import { type Entry, failedBy, queueOf } from './store-incoming.ts'
import { registersOnce } from './store-registers.ts'

/** What letters say about a failure that no header explains. */
const UNKNOWN_CLASS = 'unknown'

/** Correlation ids are indexed; those of consumers have 36 characters. */
const MAX_CORRELATION_BYTES = 256

const DAY_US = 86_400_000_000n

/** The death notes of these records, in their order; `details` is what history says of each beside its place. */
export async function noteDeaths(
  work: OfficeWork,
  registers: Registers,
  operation: string,
  entries: readonly Entry[],
  details: (index: number) => object = () => ({}),
): Promise<DeathNote[]> {
  const once = registersOnce(registers)
  const kinds = new Map<string, Promise<DeathNote>>()
  const noteOf = (entry: Entry): Promise<DeathNote> => {
    const death = deathOf(entry, operation)
    const kind = JSON.stringify([death.queue, death.errorClass, death.errorMessage, death.errorStack])
    const times = { capturedAt: work.now, lastFailureAt: failedAt(entry, work.now) }
    const note = kinds.get(kind) ?? noteDeath(work, once, death, times)
    kinds.set(kind, note)
    return note
  }
  // Not one after the other: what is new is asked for together.
  const notes = await Promise.all(entries.map(noteOf))
  return notes.map((note, index) => toldOf(work, note, entryAt(entries, index), details(index)))
}

/** Why and where it died, as far as many die of the same. */
function deathOf({ facts }: Entry, operation: string): Death {
  const { class: errorClass = UNKNOWN_CLASS, message = '', stack = null } = facts.exception
  return {
    source: KAFKA,
    engine: KAFKA,
    queue: queueOf(facts),
    instanceId: null,
    correlationId: null,
    reason: 'failed',
    errorClass,
    errorMessage: message,
    errorStack: stack,
    failedBy: failedBy(facts),
    record: {
      operation,
      status: 'Succeeded',
      durationMs: 0,
      actor: SYSTEM.actor,
      input: null,
      output: null,
    },
  }
}

/** The note of a kind of death as that of one record. */
function toldOf({ now }: OfficeWork, note: DeathNote, entry: Entry, details: object): DeathNote {
  const at = failedAt(entry, now)
  const output = Buffer.from(JSON.stringify({ ...placeOf(entry), ...details }))
  return {
    ...note,
    correlationId: correlationOf(entry),
    record: { ...note.record, output },
    firstFailureAt: at,
    lastFailureAt: at,
  }
}

function entryAt(entries: readonly Entry[], index: number): Entry {
  const entry = entries[index]
  if (entry === undefined) throw new Error('there are more notes than records')
  return entry
}

/** What the office finds an event by: its own correlation id, whatever it is, or one that stands for it. */
export const correlationOf = ({ facts, dlqId }: Entry): string =>
  storable(facts.correlationId ?? '', MAX_CORRELATION_BYTES) || facts.mintedCorrelationId || dlqId

const placeOf = ({ record, dlqId }: Entry) => ({
  topic: record.topic,
  partition: record.partition,
  offset: record.offset.toString(),
  dlq_id: dlqId,
})

/** When the record was written, by what it says; the present where that cannot be. */
function failedAt({ record: { timestampMs } }: Entry, now: Instant): Instant {
  const at = timestampMs * 1000n
  return timestampMs < 0n || at > now + DAY_US ? now : instant(at)
}
