/**
 * What a source brings to the command line. Apart from its module: a command that asks a server or prints help should
 * not load schemas, routes and workers.
 */
import type { Database } from '../store/database.ts'
import { commandsWith, type MakeCommand } from '../terminal/command.ts'
import type { ExitCode } from '../terminal/exit.ts'
import type { CommandKit } from '../terminal/office.ts'

export interface SourceCommands {
  readonly name: string
  /** Takes reports of failures, under its name or others; imported letters of own engines are filed here. */
  readonly takesReports?: true
  /** `bartleby NAME`; left out where all commands are those of letters. */
  readonly command?: MakeCommand<SourceKit>
}

/** The kit of the command line, with configuration and store. */
export interface SourceKit extends CommandKit {
  /** The source's checked section of the configuration. */
  sectionOf(name: string, flags: StoreFlags): Promise<unknown>
  /** On a store of this version. Whatever keeps `work` from its end has the code `otherwise`. */
  onStore<T>(flags: StoreFlags, otherwise: ExitCode, work: (db: Database) => Promise<T>): Promise<T>
}

export interface StoreFlags {
  readonly store?: string
  readonly unsupportedStore?: boolean
  readonly config?: string
}

/** Such as a command on a broker or on an application's database. */
export const sourceCommand = commandsWith<SourceKit>()

export const UNSUPPORTED_STORE = 'take a server that is like PostgreSQL but another product, at your own risk'

/** On a store itself, whether servers run or not. */
export const storeCommand = (words: string, description: string) =>
  sourceCommand(words, description)
    .option('--store <url>', 'sqlite:PATH or postgres://…; sqlite:./data/bartleby.db unless configured')
    .option('--unsupported-store', UNSUPPORTED_STORE)
    .option('--config <file>', 'configuration in YAML')
