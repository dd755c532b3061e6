/** What the parts of this source share: the account, the store, and the words for what is counted and noted. */
import type { Clock } from '../../core/clock.ts'
import { storable, storableText } from '../../core/content.ts'
import type { Log } from '../../core/log.ts'
import { recordHistory } from '../../history/record.ts'
import { sourceNames } from '../../letters/kinds.ts'
import { type Letter, OFFICE } from '../../letters/letter.ts'
import type { Registers } from '../../letters/registers.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { AzureTables } from '../../outgoing/azure/keys.ts'
import type { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import type { Database } from '../../store/database.ts'
import type { Account } from './account.ts'

export const AZURE = 'azure'

/** What history calls what happens to a letter here besides the acts on all letters. */
export const OPERATIONS = {
  uncertain: 'send-uncertain',
  failed: 'send-failed',
  settled: 'send-settled',
  overruled: 'change-overruled',
  noted: 'change-noted',
} as const

/** Counters of this server, since it started. */
export class AzureCounters {
  readonly counts = {
    taken: 0,
    reopened: 0,
    changed: 0,
    history: 0,
    confirmed: 0,
    sent: 0,
    unsent: 0,
    uncertain: 0,
    written: 0,
    removed: 0,
  }

  add(what: keyof AzureCounters['counts'], many = 1): void {
    this.counts[what] += many
  }
}

export interface AzureParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly registers: Registers
  readonly engines: EngineDirectory
  readonly settings: AzureTables
  readonly account: Account
  readonly counters: AzureCounters
}

/** The engine of a partition. One that the office cannot have, by its form, its name or its context, is this source itself. */
export function engineOf({ engines }: { readonly engines: EngineDirectory }, partitionKey: string): string {
  if (sourceNames().includes(partitionKey) || partitionKey === OFFICE) return AZURE
  try {
    engines.check(partitionKey)
    return partitionKey
  } catch {
    return AZURE
  }
}

/** Adds a row about a letter that changes nothing of it. */
export async function noteOn(
  { tx, now }: OfficeWork,
  letter: Pick<Letter, 'id' | 'engine' | 'instanceId' | 'correlationId'>,
  operation: keyof typeof OPERATIONS,
  about: {
    readonly actor: string | null
    readonly details: object
    readonly notes?: string
    readonly error?: string
  },
): Promise<void> {
  const { id, engine, instanceId, correlationId } = letter
  await recordHistory(tx, [
    {
      ...{ engine, instanceId, correlationId, letterId: id, createdAt: now, durationMs: 0 },
      operation: OPERATIONS[operation],
      status: about.error === undefined ? 'Succeeded' : 'Failed',
      actor: storableText(about.actor),
      error: about.error === undefined ? null : storable(about.error, 4_096),
      notes: about.notes === undefined ? null : storable(about.notes, 4_096),
      output: Buffer.from(JSON.stringify(about.details)),
    },
  ])
}
