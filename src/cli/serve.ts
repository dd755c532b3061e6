/**
 * `bartleby serve`: runs the server until a signal ends it. What it needs is loaded when it runs: commands
 * that only talk to a server should not wait for it.
 */
import { Command } from 'commander'
import type { Config, ConfigFlags } from '../config/index.ts'
import { BartlebyError } from '../core/errors.ts'
import { CommandFailure, EXIT, EXIT_HELP, reasonOf } from './exit.ts'
import { listenForStop } from './stop-signal.ts'
import type { Terminal } from './terminal.ts'

export function serveCommand(terminal: Terminal): Command {
  return new Command('serve')
    .description('Serve the queues over HTTP until stopped (SIGTERM or Ctrl-C).')
    .option('--host <address>', 'address to listen on; 127.0.0.1 unless configured')
    .option('--port <number>', 'port to listen on, 0 for any free one; 1853 unless configured')
    .option(
      '--store <url>',
      'sqlite:PATH, sqlite::memory: or postgres://…; sqlite:./data/bartleby.db unless configured',
    )
    .option('--config <file>', 'configuration in YAML')
    .addHelpText(
      'after',
      `
Flags win over the environment (BARTLEBY_HOST, BARTLEBY_PORT, BARTLEBY_STORE, BARTLEBY_CONFIG), and that over the file.
On an address other than loopback the server starts only when tokens are configured.

Examples:
  $ bartleby serve
  $ bartleby serve --port 9000 --store sqlite:/var/lib/bartleby/queues.db
  $ bartleby serve --store postgres://app:secret@db/bartleby --config bartleby.yaml

${EXIT_HELP}
  130, 143  a second Ctrl-C or SIGTERM cut the shutdown short`,
    )
    .action((flags: ConfigFlags) => serveUntilSignal(flags, terminal))
}

async function serveUntilSignal(flags: ConfigFlags, terminal: Terminal): Promise<void> {
  const { checkExposure, loadConfig } = await import('../config/index.ts')
  const config = loadConfig({ env: terminal.env, flags })
  checkExposure(config)
  const stopAsked = listenForStop()
  const server = await startOrExplain(config)
  terminal.out(`bartleby listening on ${server.url}`)
  await stopAsked
  await server.stop()
}

async function startOrExplain(config: Config) {
  const { serve } = await import('../http/serve.ts')
  try {
    return await serve(config)
  } catch (error) {
    if (isWrongOption(error)) throw new CommandFailure(EXIT.usage, reasonOf(error), { cause: error })
    if (!(error instanceof Error && 'syscall' in error && error.syscall === 'listen')) throw error
    if ('code' in error && error.code === 'EADDRINUSE') {
      const where = `port ${config.port} of ${config.host}`
      throw new CommandFailure(EXIT.failed, `${where} is already in use; choose another with --port`, {
        cause: error,
      })
    }
    throw new CommandFailure(EXIT.failed, `cannot listen: ${reasonOf(error)}`, { cause: error })
  }
}

/** What only those parts know that use it: a header, or a secret, that cannot be one. */
const isWrongOption = (error: unknown): boolean =>
  error instanceof BartlebyError && error.code === 'outbox_option_invalid'
