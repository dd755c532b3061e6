/**
 * What a source brings to the office. Office, server, configuration, metrics, health, verify, migrations, command line and demo are
 * loops over one list of these (`index.ts`); none of them knows a source by its name.
 */
import type { Static, TSchema } from 'typebox'
import type { Settings } from '../core/settings/given.ts'
import type { Fixed, Given } from '../core/settings/kinds.ts'
import type { Migration } from '../store/migrations.ts'

export interface SourceModule<Name extends string = string, Schema extends TSchema = TSchema> {
  /** The name of its letters' source, of its section in a configuration, and of its command. */
  readonly name: Name
  /** As people say it. */
  readonly title: string
  /** Left out: there is nothing to configure. */
  readonly settings?: SourceSettings<Schema>
  /** Their numbers are unique over all modules. */
  readonly migrations?: readonly Migration[]
}

/** The section of a configuration that has the source's name. */
export interface SourceSettings<Schema extends TSchema = TSchema> {
  /** Its keys, their defaults and what they allow. */
  readonly schema: Schema
  /** Keys of it that are known as sections of their own too: `{ engineTablesConfig: 'tables' }`. */
  readonly aliases?: Readonly<Record<string, string>>
  /** What several keys decide, of a section whose keys are right one by one, or of `all` settings; each opens with its key. */
  problems?(given: Given<SectionOf<Schema>>, all: Settings): readonly string[]
  /** The section with paths that mean the same wherever the server was started. */
  inFolder?(given: SectionOf<Schema>, folder: string): SectionOf<Schema>
}

/** What a configuration has under the source's name. */
export type SectionOf<Schema extends TSchema> = Fixed<Static<Schema>>
