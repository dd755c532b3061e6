/**
 * What a source brings to the office. Office, server, configuration, metrics, health, verify, migrations, command line and demo are
 * loops over one list of these (`index.ts`); none of them knows a source by its name.
 */
import type { Migration } from '../store/migrations.ts'

export interface SourceModule {
  /** The name of its letters' source, of its section in a configuration, and of its command. */
  readonly name: string
  /** As people say it. */
  readonly title: string
  /** Their numbers are unique over all modules. */
  readonly migrations?: readonly Migration[]
}
