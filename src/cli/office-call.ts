/** How commands talk to a server: calls of its office API, and errors as exit codes. */
import { dataOf } from '../client/envelope.ts'
import { OfficeClientError } from '../client/errors.ts'
import { endpointOf } from '../client/transport.ts'
import { CommandFailure, EXIT } from './exit.ts'
import { type ConnectionFlags, DEFAULT_URL } from './queues/connection.ts'
import type { Terminal } from './terminal.ts'

/** A purge answers when it is done; a million dead jobs take minutes. */
const TIMEOUT_MS = 30 * 60_000

/** Calls the server and gives `data` of its answer. `Data` is what the server promises. */
export type CallServer = <Data>(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
) => Promise<Data>

/** Runs `work` with the server that flags and environment name. */
export async function withServer(
  flags: ConnectionFlags,
  { env }: Terminal,
  work: (call: CallServer) => Promise<void>,
): Promise<void> {
  const url = flags.url ?? env.BARTLEBY_URL ?? DEFAULT_URL
  if (!/^https?:/.test(url) || !URL.canParse(url)) {
    throw new CommandFailure(EXIT.usage, `--url is '${url}'; expected for example ${DEFAULT_URL}`)
  }
  const endpoint = endpointOf({ url, token: flags.token ?? env.BARTLEBY_TOKEN })
  const call: CallServer = async <Data>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: object,
  ) =>
    // What it is, is the server's promise.
    (await dataOf(
      endpoint,
      { method, path, timeoutMs: TIMEOUT_MS, ...(body === undefined ? {} : { body }) },
      {},
      method === 'GET',
    )) as Data
  try {
    await work(call)
  } catch (error) {
    throw error instanceof OfficeClientError ? explained(error) : error
  }
}

const HINTS: Readonly<Record<string, string>> = {
  network: ' (is the server running? start it with `bartleby serve`)',
  token_missing: ' (give a token with --token or BARTLEBY_TOKEN)',
  path_unknown: ' (is --url the address of a Bartleby server of this version?)',
}

/** What was named is not there. */
const NOTHING: readonly string[] = ['channel_unknown', 'consumer_unknown', 'letter_unknown']

function explained(error: OfficeClientError): CommandFailure {
  const isNothing = NOTHING.includes(error.code)
  const message = error.message + (HINTS[error.code] ?? '')
  return new CommandFailure(isNothing ? EXIT.nothing : EXIT.failed, message, { cause: error })
}
