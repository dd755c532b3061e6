/**
 * What a source brings to the office. Office, server, configuration, metrics, health, verify, migrations, command line
 * and demo are loops over one list of these (`index.ts`); none knows a source by its name.
 */
import type { Static, TSchema } from 'typebox'
import type { ServedSource } from '../api/source-http.ts'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Service } from '../core/rounds.ts'
import type { Settings } from '../core/settings/given.ts'
import type { Fixed, Given } from '../core/settings/kinds.ts'
import type { SourceDemo } from '../demo/story/story.ts'
import type { History } from '../history/history.ts'
import type { Invariant } from '../letters/audit/invariant.ts'
import type { SourceKind } from '../letters/kinds.ts'
import type { Letters } from '../letters/letters.ts'
import type { Registers } from '../letters/registers.ts'
import type { LetterSource } from '../letters/source.ts'
import type { OfficeRuns } from '../letters/work.ts'
import type { AzureTables } from '../outgoing/azure/keys.ts'
import type { ConnectionSettings } from '../outgoing/kafka/connection.ts'
import type { EngineDirectory } from '../queues/engines/engine-directory.ts'
import type { StoreQueues } from '../queues/queues.ts'
import type { readRedriveRef } from '../redrive/rows/rows.ts'
import type { Database } from '../store/database.ts'
import type { Migration } from '../store/migrations.ts'

/**
 * `Schema` is its section of a configuration, `Options` what whoever opens an office gives instead, `Face` what it adds
 * to the office.
 */
export interface SourceModule<
  Name extends string = string,
  Schema extends TSchema = TSchema,
  Options = unknown,
  Face extends object = object,
> {
  /** Names its letters' source, its section of the configuration, and its command. */
  readonly name: Name
  /** For people. */
  readonly title: string
  /** What the heart must know of its letters; the name is the module's. */
  readonly kind: Omit<SourceKind, 'name'>
  /** Left out: nothing to configure. */
  readonly settings?: SourceSettings<Schema>
  /** Numbers are unique over all modules. */
  readonly migrations?: readonly Migration[]
  /** `verify` proves them on a store that no office has open. */
  readonly invariants?: readonly Invariant[]
  /** For other sources, known before anything is open. */
  offers?(options: Options | undefined): Offers
  /** On a store that is up to date. Nothing runs before it is started. */
  open(parts: OfficeParts, options: Options | undefined): OpenSource<Face> | Promise<OpenSource<Face>>
  /** Loaded only there. Left out: not configured in a demo. */
  demo?(): Promise<SourceDemo<SectionOf<Schema>, Face>>
}

export interface SourceSettings<Schema extends TSchema = TSchema> {
  readonly schema: Schema
  /** Keys that are also sections of their own: `{ engineTablesConfig: 'tables' }`. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Offices that a command opens for a moment do without it. */
  readonly isForServers?: boolean
  /** Problems of several keys together, or with `all` settings; each opens with its key. */
  problems?(given: Given<SectionOf<Schema>>, all: Settings): readonly string[]
}

export type SectionOf<Schema extends TSchema> = Fixed<Static<Schema>>

export interface Offers {
  /** How brokers are reached, if configured. */
  readonly brokers?: ConnectionSettings | null
  /** The unified tables, if they are in a storage account. */
  readonly tables?: AzureTables | null
}

export interface OfficeParts {
  /** `url` as given. */
  readonly store: { readonly url: string; readonly db: Database }
  readonly clock: Clock
  /** Logs an outage of the store once. */
  readonly log: Log
  /** Logs everything: for other databases, with outages of their own. */
  readonly plainLog: Log
  readonly registers: Registers
  readonly runs: OfficeRuns
  readonly queues: StoreQueues
  readonly letters: Letters
  readonly history: History
  readonly engines: EngineDirectory
  readonly redriveOf: typeof readRedriveRef
  readonly offers: Offers
}

export interface OpenSource<Face extends object = object> extends ServedSource {
  readonly letters: LetterSource
  /** Added to the office: `office.webhooks`. */
  readonly face: Face
  /** Services stop within a few seconds, all at once: runs and redrives are over by then, and queues still take what is settled. */
  readonly services: readonly Service[]
}

export type NamedSource = OpenSource & Pick<SourceModule, 'name' | 'title'>
