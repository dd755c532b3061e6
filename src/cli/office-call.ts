/** How commands talk to a server: calls of its office API, and errors as exit codes. */
import { dataOf } from '../client/envelope.ts'
import { OfficeClientError } from '../client/errors.ts'
import { HistoryClient } from '../client/history.ts'
import { LetterClient } from '../client/letters.ts'
import { RedriveClient } from '../client/redrives.ts'
import { RunClient } from '../client/runs.ts'
import { type ConnectionOptions, type Endpoint, endpointOf } from '../client/transport.ts'
import { CommandFailure, EXIT } from './exit.ts'
import { type ConnectionFlags, DEFAULT_URL } from './queues/connection.ts'
import { printable, type Terminal } from './terminal.ts'

/** A purge answers when it is done; a million dead jobs take minutes. */
const TIMEOUT_MS = 30 * 60_000

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** For a caller that asks again anyway, and would rather know soon. */
export interface Patience {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** A failed connection is not tried again. */
  readonly once?: boolean
}

/** Calls the server and gives `data` of its answer. `Data` is what the server promises. */
export type CallServer = <Data>(
  method: Method,
  path: string,
  body?: object,
  patience?: Patience,
) => Promise<Data>

/** A server, and the clients that know its calls. */
export interface OfficeServer {
  readonly url: string
  readonly endpoint: Endpoint
  readonly call: CallServer
  readonly letters: LetterClient
  readonly history: HistoryClient
  readonly redrives: RedriveClient
  readonly runs: RunClient
}

/** Runs `work` with the server that flags and environment name. */
export const withServer = (
  flags: ConnectionFlags,
  terminal: Terminal,
  work: (call: CallServer) => Promise<void>,
): Promise<void> => withOffice(flags, terminal, ({ call }) => work(call))

/** The same, with its clients. */
export async function withOffice(
  flags: ConnectionFlags,
  { env }: Terminal,
  work: (office: OfficeServer) => Promise<void>,
): Promise<void> {
  const url = flags.url ?? env.BARTLEBY_URL ?? DEFAULT_URL
  if (!/^https?:/.test(url) || !URL.canParse(url)) {
    throw new CommandFailure(EXIT.usage, `--url is '${url}'; expected for example ${DEFAULT_URL}`)
  }
  await workWith({ url, token: flags.token ?? env.BARTLEBY_TOKEN }, work)
}

/** The same, with an office that is found by these. */
export async function workWith(
  connection: ConnectionOptions,
  work: (office: OfficeServer) => Promise<void>,
): Promise<void> {
  const endpoint = endpointOf(connection)
  const call: CallServer = async <Data>(
    method: Method,
    path: string,
    body?: object,
    { timeoutMs = TIMEOUT_MS, once = false, ...options }: Patience = {},
  ) => {
    const request = { method, path, timeoutMs, ...(body === undefined ? {} : { body }) }
    // What it is, is the server's promise.
    return (await dataOf(endpoint, request, options, method === 'GET' && !once)) as Data
  }
  try {
    await work({
      url: endpoint.url,
      endpoint,
      call,
      letters: new LetterClient(connection),
      history: new HistoryClient(connection),
      redrives: new RedriveClient(connection),
      runs: new RunClient(connection),
    })
  } catch (error) {
    throw error instanceof OfficeClientError ? explained(error) : error
  }
}

const HINTS: Readonly<Record<string, string>> = {
  network: ' (is the server running? start it with `bartleby serve`)',
  token_missing: ' (give a token with --token or BARTLEBY_TOKEN)',
  token_unknown: ' (give another one with --token or BARTLEBY_TOKEN)',
  path_unknown: ' (is --url the address of a Bartleby server of this version?)',
}

/** What was named is not there. */
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

/** The request itself is wrong, and only another one can succeed. */
const USAGE: readonly string[] = [
  'continuation_token_invalid',
  'engine_unknown',
  'operation_unknown',
  'parameter_invalid',
  'source_unknown',
  'status_unknown',
]

const exitCodeOf = ({ code }: OfficeClientError) => {
  if (NOTHING.includes(code)) return EXIT.nothing
  return USAGE.includes(code) ? EXIT.usage : EXIT.failed
}

/** What went wrong at the server, in one line and with what to try. */
export const refusalText = ({ code, message }: OfficeClientError): string =>
  printable(message) + (HINTS[code] ?? '')

function explained(error: OfficeClientError): CommandFailure {
  return new CommandFailure(exitCodeOf(error), refusalText(error), { cause: error })
}
