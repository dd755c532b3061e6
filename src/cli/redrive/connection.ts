/** Where the redrives are: on a server, or on a store that this command opens itself. */
import type { Command } from 'commander'
import { withoutPassword } from '../../config/config-error.ts'
import { usage } from '../exit.ts'
import { waitTimeoutMs } from '../letters/wait-timeout.ts'
import { type OfficeServer, withOffice } from '../office-call.ts'
import { type ConnectionFlags, serverCommand } from '../queues/connection.ts'
import type { Terminal } from '../terminal.ts'

export interface RedriveFlags extends ConnectionFlags {
  readonly store?: string
  readonly config?: string
}

/** Adds where to look, and `--json`. */
export const redriveCommand = (name: string, description: string, examples: readonly string[]): Command =>
  serverCommand(name, description, examples, 'redrive')
    .option('--store <url>', 'no server: open this store here, sqlite:PATH or postgres://…')
    .option('--config <file>', 'with --store: the configuration of its servers, in YAML')

/** What a command works with. */
export interface Desk {
  readonly office: OfficeServer
  /** ` --url …` or ` --store …`, for commands that are named to the user. */
  readonly place: string
  /** Who goes on with a redrive when this command ends. */
  readonly goesOn: string
}

/**
 * Runs `work` with the server, or with an office of its own on the store, that the flags name. `carriesOut`: such an office goes on
 * with redrives meanwhile, because the command waits for them.
 */
export async function withDesk(
  flags: RedriveFlags,
  terminal: Terminal,
  work: (desk: Desk) => Promise<void>,
  { carriesOut = false } = {},
): Promise<void> {
  const { url, store, config } = flags
  if (store === undefined) {
    if (config !== undefined) throw usage('--config is for --store; a server has its own')
    const place = url === undefined ? '' : ` --url ${url}`
    return withOffice(flags, terminal, (office) =>
      work({ office, place, goesOn: 'the server goes on with it' }),
    )
  }
  if (url !== undefined) throw usage('give --url or --store, not both')
  // Loaded when it is needed: most commands only talk to a server.
  const { withStoreOffice } = await import('./store-office.ts')
  const place = ` --store ${shellWord(store)}${config === undefined ? '' : ` --config ${shellWord(config)}`}`
  const goesOn = 'a server on that store goes on with it, or a command that watches it with --store'
  await withStoreOffice({ store, config }, { carriesOut }, terminal, (office) =>
    work({ office, place, goesOn }),
  )
}

/** A store or a file as a word of a shell; a password is not printed, and has to be put in again. */
const shellWord = (text: string): string => {
  const word = withoutPassword(text)
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export interface WatchFlags {
  readonly wait?: boolean
  readonly waitTimeout?: string
}

/** Adds `--wait`. */
export const withWaitFlags = (command: Command): Command =>
  command
    .option('--wait', 'watch, and then wait until it is known what became of what was sent')
    .option('--wait-timeout <duration>', 'how long at most after its end', '1m')

/** How long outcomes are waited for; null: they are not. */
export const waitMsOf = ({ wait, waitTimeout }: WatchFlags): number | null => {
  const timeoutMs = waitTimeoutMs(waitTimeout ?? '1m')
  return wait ? timeoutMs : null
}
