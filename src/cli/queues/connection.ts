/** What the commands on a server share: where it is, JSON or tables; and for `bartleby queues`, errors as exit codes. */
import { Command } from 'commander'
import { QueueClient, QueueClientError, type QueueErrorCode } from '../../client/index.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import type { Terminal } from '../terminal.ts'

export const DEFAULT_URL = 'http://127.0.0.1:1853'

export interface ConnectionFlags {
  readonly url?: string
  readonly token?: string
  readonly json?: boolean
}

/** A command that talks to a server, with the options for it and the examples that end its help; in the group '' it has none. */
export function serverCommand(
  usage: string,
  description: string,
  examples: readonly string[],
  group = 'queues',
): Command {
  const words = group === '' ? 'bartleby' : `bartleby ${group}`
  const shown = examples.map((example) => `  $ ${words} ${example}`).join('\n')
  const [name, ...parameters] = usage.split(' ')
  const command = new Command(name)
  for (const parameter of parameters) command.argument(parameter)
  return command
    .description(description)
    .option('--url <url>', `the server; BARTLEBY_URL or ${DEFAULT_URL} unless given`)
    .option(
      '--token <token>',
      'bearer token; BARTLEBY_TOKEN unless given, which other users of the machine cannot see',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExamples:\n${shown}`)
}

/** Runs `work` with a client for the server that flags and environment name. */
export async function withClient(
  flags: ConnectionFlags,
  { env }: Terminal,
  work: (client: QueueClient) => Promise<void>,
): Promise<void> {
  try {
    await work(connect(flags.url ?? env.BARTLEBY_URL ?? DEFAULT_URL, flags.token ?? env.BARTLEBY_TOKEN))
  } catch (error) {
    throw error instanceof QueueClientError ? explained(error) : error
  }
}

function connect(url: string, token: string | undefined): QueueClient {
  if (!/^https?:/.test(url) || !URL.canParse(url)) {
    throw new CommandFailure(EXIT.usage, `--url is '${url}'; expected for example ${DEFAULT_URL}`)
  }
  return new QueueClient({ url, token })
}

const NOTHING: ReadonlySet<QueueErrorCode> = new Set(['queue_unknown', 'item_unknown', 'lease_timed_out'])

const HINTS: Partial<Record<QueueErrorCode, string>> = {
  network: ' (is the server running? start it with `bartleby serve`)',
  unauthorized: ' (give a token with --token or BARTLEBY_TOKEN)',
  not_implemented: ' (is --url the address of a Bartleby server of this version?)',
}

function explained(error: QueueClientError): CommandFailure {
  const exitCode = NOTHING.has(error.code) ? EXIT.nothing : EXIT.failed
  return new CommandFailure(exitCode, error.message + (HINTS[error.code] ?? ''), { cause: error })
}

/** A whole number given as a flag; undefined when it was not given. */
export function wholeNumber(flag: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,9}$/.test(text) || Number(text) < least) {
    throw new CommandFailure(EXIT.usage, `${flag} is '${text}'; expected a whole number of at least ${least}`)
  }
  return Number(text)
}

/** Goes on only when `--yes` was given or a person types the name of what it is done to. */
export async function confirm(
  deed: string,
  name: string,
  yes: boolean | undefined,
  terminal: Terminal,
  kind = 'queue',
): Promise<void> {
  if (yes) return
  if (!terminal.stdin.isTTY) throw new CommandFailure(EXIT.usage, `this will ${deed}; add --yes to go on`)
  const answer = await terminal.ask(`This will ${deed}. Type the ${kind}'s name to go on: `)
  if (answer.trim() !== name) throw new CommandFailure(EXIT.failed, 'nothing was changed')
}
