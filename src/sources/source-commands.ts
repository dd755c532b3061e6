/**
 * What a source brings to the command line. Apart from its module, because a command that asks a server, or prints its help, should
 * not wait until schemas, routes and workers are loaded.
 */
import type { Database } from '../store/database.ts'
import { commandsWith, type MakeCommand } from '../terminal/command.ts'
import type { ExitCode } from '../terminal/exit.ts'
import type { CommandKit } from '../terminal/office.ts'

export interface SourceCommands {
  /** As its module has it. */
  readonly name: string
  /** Systems report failures to it, under its name or their own; so are letters of another office that it cannot send back. */
  readonly takesReports?: true
  /** `bartleby NAME`; left out where there is nothing to do but with its letters. */
  readonly command?: MakeCommand<SourceKit>
}

/** With what only the command line knows: the configuration, and the store that it names. */
export interface SourceKit extends CommandKit {
  /** The source's own section of the configuration that flags and environment make; its settings have been checked. */
  sectionOf(name: string, flags: StoreFlags): Promise<unknown>
  /** Runs `work` on the store that the flags name, which must be of this version. Whatever keeps it from its end has that code. */
  onStore<T>(flags: StoreFlags, otherwise: ExitCode, work: (db: Database) => Promise<T>): Promise<T>
}

export interface StoreFlags {
  readonly store?: string
  readonly unsupportedStore?: boolean
  readonly config?: string
}

/** A command of its own kind, such as one on a broker or on the database of an application. */
export const sourceCommand = commandsWith<SourceKit>()

/** What the flag `--unsupported-store` does. */
export const UNSUPPORTED_STORE = 'take a server that is like PostgreSQL but another product, at your own risk'

/** A command on a store itself, whether servers run or not. */
export const storeCommand = (words: string, description: string) =>
  sourceCommand(words, description)
    .option('--store <url>', 'sqlite:PATH or postgres://…; sqlite:./data/bartleby.db unless configured')
    .option('--unsupported-store', UNSUPPORTED_STORE)
    .option('--config <file>', 'configuration in YAML')
