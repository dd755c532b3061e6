/** Commands that talk to an office: how they find it, what they work with, how they answer, and errors as exit codes. */
import { answerOf, queryText, walkPages } from '../client/envelope.ts'
import {
  type ConnectionOptions,
  HistoryClient,
  LetterClient,
  OfficeClientError,
  type Page,
  type PageRequest,
  QueueClient,
  QueueClientError,
  RedriveClient,
  RunClient,
} from '../client/index.ts'
import { type Endpoint, endpointOf } from '../client/transport.ts'
import { withoutPassword } from '../core/settings/config-error.ts'
import { variableOf } from '../core/settings/environment.ts'
import { written } from './command.ts'
import { CommandFailure, EXIT, usage } from './exit.ts'
import { wholeNumber } from './flags.ts'
import { type Column, columnsText } from './table.ts'
import { printable, type Style, styleOf, type Terminal } from './terminal.ts'

export const DEFAULT_URL = 'http://127.0.0.1:1853'

export const SERVER_HELP = `The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.`

export interface OfficeFlags {
  readonly url?: string
  readonly token?: string
  readonly json?: boolean
  /** For commands that can do without a server. */
  readonly store?: string
  readonly config?: string
}

/** Optional flags with text values. */
export type TextFlags<Names extends string> = { readonly [Name in Names]?: string }

/** Handed to commands, which must not import it. */
export interface CommandKit {
  readonly terminal: Terminal
  /** Runs `work` with an office on that store, then closes it. `carriesOut`: it works on redrives meanwhile. */
  withStoreOffice(
    flags: { readonly store: string; readonly config: string | undefined; readonly carriesOut: boolean },
    work: (connection: ConnectionOptions) => Promise<void>,
  ): Promise<void>
}

/**
 * A command on an office. The examples of its help leave the group out. `carriesOut`: an office of its own works on
 * redrives meanwhile, because the command waits for them.
 */
export function officeCommand<const Words extends string>(
  words: Words,
  description: string,
  examples: readonly string[],
  carriesOut: (flags: OfficeFlags) => boolean = () => false,
) {
  const [path = ''] = words.split(/ (?=[<[])/)
  const begun = ['  $ bartleby', ...path.split(' ').slice(0, -1)].join(' ')
  return written(words, description, (kit: CommandKit, flags, work: Work) =>
    withOffice(flags, kit, work, carriesOut(flags)),
  )
    .option('--url <url>', `the server; BARTLEBY_URL or ${DEFAULT_URL} unless given`)
    .option(
      '--token <token>',
      'bearer token; BARTLEBY_TOKEN unless given, which other users of the machine cannot see',
    )
    .option('--json', 'print JSON')
    .help(`Examples:\n${examples.map((example) => `${begun} ${example}`).join('\n')}`)
}

/** A purge answers at the end; a million dead jobs take minutes. */
const TIMEOUT_MS = 30 * 60_000

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** For callers that ask again anyway. */
export interface Patience {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  readonly once?: boolean
}

/** Gives `data` of the answer. `Data` is the server's promise. */
export type CallOffice = <Data>(
  method: Method,
  path: string,
  body?: object,
  patience?: Patience,
) => Promise<Data>

/** What a command works with. */
export interface Desk {
  readonly terminal: Terminal
  readonly json: boolean
  readonly endpoint: Endpoint
  readonly call: CallOffice
  readonly queues: QueueClient
  readonly letters: LetterClient
  readonly history: HistoryClient
  readonly redrives: RedriveClient
  readonly runs: RunClient
  /** ` --url …` or ` --store …`, for commands that are suggested to the user. */
  readonly place: string
  /** Who continues a redrive when this command ends. */
  readonly goesOn: string
  /** JSON with `--json`, else words. */
  print<Value>(value: Value, inWords: (value: Value, style: Style) => string): void
  /** One line of JSON, or a sentence. */
  printLine(value: unknown, sentence: string): void
  /** A table; `none` where it is empty. */
  printList<Row>(rows: readonly Row[], columns: readonly Column<Row>[], none: string): void
}

type Work = (desk: Desk) => Promise<void> | void

/** With the server of flags and environment, or with an office of its own on `--store`. */
async function withOffice(
  flags: OfficeFlags,
  { terminal, withStoreOffice }: CommandKit,
  work: Work,
  carriesOut: boolean,
): Promise<void> {
  const { store, config } = flags
  if (store === undefined) {
    if (config !== undefined) throw usage('--config is for --store; a server has its own')
    const place = flags.url === undefined ? '' : ` --url ${flags.url}`
    const desk = deskAt(serverOf(flags, terminal), flags, terminal)
    return explaining(work({ ...desk, place, goesOn: 'the server goes on with it' }))
  }
  if (flags.url !== undefined) throw usage('give --url or --store, not both')
  const place = ` --store ${shellWord(store)}${config === undefined ? '' : ` --config ${shellWord(config)}`}`
  const goesOn = 'a server on that store goes on with it, or a command that watches it with --store'
  await withStoreOffice({ store, config, carriesOut }, (connection) =>
    explaining(work({ ...deskAt(connection, flags, terminal), place, goesOn })),
  )
}

function serverOf({ url, token }: OfficeFlags, { env }: Terminal): ConnectionOptions {
  const server = url ?? variableOf(env, 'BARTLEBY_URL') ?? DEFAULT_URL
  if (!/^https?:/.test(server) || !URL.canParse(server))
    throw usage(`--url is '${server}'; expected for example ${DEFAULT_URL}`)
  return { url: server, token: token ?? variableOf(env, 'BARTLEBY_TOKEN') }
}

/** A shell word without its password. */
const shellWord = (text: string): string => {
  const word = withoutPassword(text)
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

function deskAt(
  connection: ConnectionOptions,
  { json = false }: OfficeFlags,
  terminal: Terminal,
): Omit<Desk, 'place' | 'goesOn'> {
  const endpoint = endpointOf(connection)
  const style = styleOf(terminal)
  const print: Desk['print'] = (value, inWords) =>
    terminal.out(json ? JSON.stringify(value, null, 2) : inWords(value, style))
  return {
    terminal,
    json,
    endpoint,
    call: async <Data>(
      method: Method,
      path: string,
      body?: object,
      { timeoutMs = TIMEOUT_MS, once = false, ...options }: Patience = {},
    ) => {
      const request = { method, path, timeoutMs, ...(body === undefined ? {} : { body }) }
      return (await answerOf<Data>(endpoint, request, options, method === 'GET' && !once)).data
    },
    queues: new QueueClient(connection),
    letters: new LetterClient(connection),
    history: new HistoryClient(connection),
    redrives: new RedriveClient(connection),
    runs: new RunClient(connection),
    print,
    printLine: (value, sentence) => terminal.out(json ? JSON.stringify(value) : sentence),
    printList: (rows, columns, none) =>
      print(rows, () =>
        rows.length === 0 ? none : columnsText(columns, rows, terminal.screen?.columns, style),
      ),
  }
}

const HINTS: Readonly<Record<string, string>> = {
  network: ' (is the server running? start it with `bartleby serve`)',
  token_missing: ' (give a token with --token or BARTLEBY_TOKEN)',
  unauthorized: ' (give a token with --token or BARTLEBY_TOKEN)',
  token_unknown: ' (give another one with --token or BARTLEBY_TOKEN)',
  path_unknown: ' (is --url the address of a Bartleby server of this version?)',
  not_implemented: ' (is --url the address of a Bartleby server of this version?)',
}

/** Not found. */
const NOTHING: readonly string[] = [
  'channel_unknown',
  'consumer_unknown',
  'history_unknown',
  'letter_unknown',
  'redrive_empty',
  'redrive_unknown',
  'run_unknown',
  'signature_unknown',
]

/** Not found, in the queue API. */
const NO_ITEMS: readonly string[] = ['queue_unknown', 'item_unknown', 'lease_timed_out']

/** Only another request can succeed. */
const USAGE: readonly string[] = [
  'continuation_token_invalid',
  'engine_unknown',
  'operation_unknown',
  'parameter_invalid',
  'source_unknown',
  'status_unknown',
]

function exitCodeOf(error: OfficeClientError | QueueClientError) {
  if (error instanceof QueueClientError) return NO_ITEMS.includes(error.code) ? EXIT.nothing : EXIT.failed
  if (NOTHING.includes(error.code)) return EXIT.nothing
  return USAGE.includes(error.code) ? EXIT.usage : EXIT.failed
}

/** One line, with what to try. */
export const refusalText = ({ code, message }: OfficeClientError | QueueClientError): string =>
  printable(message) + (HINTS[code] ?? '')

async function explaining(work: Promise<void> | void): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof OfficeClientError || error instanceof QueueClientError)) throw error
    throw new CommandFailure(exitCodeOf(error), refusalText(error), { cause: error })
  }
}

const LARGEST_PAGE = 100

type Query = Readonly<Record<string, string | undefined>>

/** At most `most` items. Further pages are asked for when needed. */
export async function* walkList<Item>(
  { call }: Pick<Desk, 'call'>,
  path: string,
  query: Query,
  most = Number.POSITIVE_INFINITY,
): AsyncGenerator<Item, void, undefined> {
  if (most <= 0) return
  let given = 0
  const list = ({ limit, continuationToken }: PageRequest) =>
    call<Page<Item>>('GET', `${path}${queryText({ ...query, limit: String(limit), continuationToken })}`)
  for await (const item of walkPages(Math.min(LARGEST_PAGE, most), list)) {
    yield item
    given += 1
    if (given >= most) return
  }
}

/** For lists that are not long. */
export async function listAll<Item>(
  desk: Pick<Desk, 'call'>,
  path: string,
  query: Query,
  most?: number,
): Promise<readonly Item[]> {
  const items: Item[] = []
  for await (const item of walkList<Item>(desk, path, query, most)) items.push(item)
  return items
}

/** All flags but those of every command are its query. */
export async function printListAt<Row>(
  desk: Desk,
  path: string,
  { url: _, token: __, json: ___, limit, ...query }: OfficeFlags & { readonly limit: string },
  columns: readonly Column<Row>[],
  none: string,
): Promise<void> {
  const rows = await listAll<Row>(desk, path, query, wholeNumber('--limit', limit, 1))
  desk.printList(rows, columns, none)
}
