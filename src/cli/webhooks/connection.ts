/** How `bartleby webhooks` talks to a server: calls of its office API, and errors as exit codes. */
import type { Command } from 'commander'
import { dataOf, pathTo } from '../../client/envelope.ts'
import { OfficeClientError } from '../../client/errors.ts'
import { endpointOf } from '../../client/transport.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import { type ConnectionFlags, DEFAULT_URL, serverCommand } from '../queues/connection.ts'
import type { Terminal } from '../terminal.ts'

/** A purge answers when it is done; a million dead jobs take minutes. */
const TIMEOUT_MS = 30 * 60_000

/** Calls the server and gives `data` of its answer. `Data` is what the server promises. */
export type CallServer = <Data>(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
) => Promise<Data>

/** A command on webhooks of a server. */
export const webhookCommand = (usage: string, description: string, examples: readonly string[]): Command =>
  serverCommand(usage, description, examples, 'webhooks')

/** The path of what can be done with one consumer. */
export const consumerPath = (channel: string, consumer: string, act: string): string =>
  `${pathTo('/api/webhooks/channels', channel)}/${pathTo('consumers', consumer)}/${act}`

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

function explained(error: OfficeClientError): CommandFailure {
  const isNothing = error.code === 'channel_unknown' || error.code === 'consumer_unknown'
  const message = error.message + (HINTS[error.code] ?? '')
  return new CommandFailure(isNothing ? EXIT.nothing : EXIT.failed, message, { cause: error })
}
