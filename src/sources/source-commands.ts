/**
 * What a source brings to the command line. Apart from its module, because a command that asks a server, or prints its help, should
 * not wait until schemas, routes and workers are loaded.
 */
import type { Database } from '../store/database.ts'
import type { ExitCode } from '../terminal/exit.ts'
import type { StoreFlags } from '../terminal/flags.ts'
import type { CommandKit, MakeCommand } from '../terminal/office.ts'

/** With what only the command line knows: the configuration, and the store that it names. */
export interface SourceKit extends CommandKit {
  /** The source's own section of the configuration that flags and environment make; its settings have been checked. */
  sectionOf(name: string, flags: StoreFlags): Promise<unknown>
  /** Runs `work` on the store that the flags name, which must be of this version. Whatever keeps it from its end has that code. */
  onStore<T>(flags: StoreFlags, otherwise: ExitCode, work: (db: Database) => Promise<T>): Promise<T>
}

export interface SourceCommands {
  /** As its module has it. */
  readonly name: string
  /** Systems report failures to it, under its name or their own; so are letters of another office that it cannot send back. */
  readonly takesReports?: true
  /** `bartleby NAME`; left out where there is nothing to do but with its letters. */
  readonly command?: MakeCommand<SourceKit>
}
