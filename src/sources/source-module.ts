/**
 * What a source brings to the office. Office, server, configuration, metrics, health, verify, migrations, command line and demo are
 * loops over one list of these (`index.ts`); none of them knows a source by its name.
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
 * A source as the list has it. `Schema` is that of its section in a configuration, `Options` what whoever opens an office gives in its
 * place, `Face` what it adds to the office.
 */
export interface SourceModule<
  Name extends string = string,
  Schema extends TSchema = TSchema,
  Options = unknown,
  Face extends object = object,
> {
  /** The name of its letters' source, of its section in a configuration, and of its command. */
  readonly name: Name
  /** As people say it. */
  readonly title: string
  /** What the heart has to know of its letters; its name is the module's. */
  readonly kind: Omit<SourceKind, 'name'>
  /** Left out: there is nothing to configure. */
  readonly settings?: SourceSettings<Schema>
  /** Their numbers are unique over all modules. */
  readonly migrations?: readonly Migration[]
  /** What it promises beside that; `verify` proves it on a store that no office has open. */
  readonly invariants?: readonly Invariant[]
  /** What others may use of it, known before anything is open. */
  offers?(options: Options | undefined): Offers
  /** Makes it ready, on a store that is up to date. Nothing runs before it is started. */
  open(parts: OfficeParts, options: Options | undefined): OpenSource<Face> | Promise<OpenSource<Face>>
  /** Its part in the demo, which is loaded there alone. Left out: it is not configured in a demo. */
  demo?(): Promise<SourceDemo<SectionOf<Schema>, Face>>
}

/** The section of a configuration that has the source's name. */
export interface SourceSettings<Schema extends TSchema = TSchema> {
  /** Its keys, their defaults and what they allow. */
  readonly schema: Schema
  /** Keys of it that are known as sections of their own too: `{ engineTablesConfig: 'tables' }`. */
  readonly aliases?: Readonly<Record<string, string>>
  /** An office that a command opens for a moment does without it, and leaves the work to servers. */
  readonly isForServers?: boolean
  /** What several keys decide, of a section whose keys are right one by one, or of `all` settings; each opens with its key. */
  problems?(given: Given<SectionOf<Schema>>, all: Settings): readonly string[]
}

/** What a configuration has under the source's name. */
export type SectionOf<Schema extends TSchema> = Fixed<Static<Schema>>

/** What one source has and another may use. */
export interface Offers {
  /** How brokers are reached, where that is configured. */
  readonly brokers?: ConnectionSettings | null
  /** Where the unified tables are, if they are in a storage account. */
  readonly tables?: AzureTables | null
}

/** What a source has of its office. */
export interface OfficeParts {
  /** Where the office is kept; `url` as it was given. */
  readonly store: { readonly url: string; readonly db: Database }
  readonly clock: Clock
  /** Tells an outage of the store once. */
  readonly log: Log
  /** Tells everything: for what lies in other databases, with outages of their own. */
  readonly plainLog: Log
  readonly registers: Registers
  readonly runs: OfficeRuns
  readonly queues: StoreQueues
  readonly letters: Letters
  readonly history: History
  readonly engines: EngineDirectory
  /** Redrives by their numbers. */
  readonly redriveOf: typeof readRedriveRef
  readonly offers: Offers
}

/** A source that is open. */
export interface OpenSource<Face extends object = object> extends ServedSource {
  /** The way back of its letters. */
  readonly letters: LetterSource
  /** What it adds to the office: `office.webhooks`. */
  readonly face: Face
  /**
   * What runs by itself. Services stop within a few seconds, all of them at once: runs and redrives are over by then, and queues still
   * take what is settled.
   */
  readonly services: readonly Service[]
}

/** As an office has it. */
export type NamedSource = OpenSource & Pick<SourceModule, 'name' | 'title'>
