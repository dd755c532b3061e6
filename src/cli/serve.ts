/**
 * `bartleby serve`: runs the server until a signal ends it. The server is loaded only here: other commands should not
 * wait for it.
 */
import type { Config } from '../config/index.ts'
import type { RunningServer } from '../http/serve.ts'
import { SOURCE_COMMANDS } from '../sources/commands.ts'
import { sourceCommand, UNSUPPORTED_STORE } from '../sources/source-commands.ts'
import { CommandFailure, EXIT, EXIT_HELP, failureOf, isWrongOption, reasonOf } from '../terminal/exit.ts'
import { listenForStop, type Terminal } from '../terminal/terminal.ts'
import { listed } from '../terminal/words.ts'

const OWN_APIS = SOURCE_COMMANDS.filter(({ command }) => command).map(({ name }) => name)

export const serveCommand = sourceCommand(
  'serve',
  `Serve the office until stopped (SIGTERM or Ctrl-C): the console, and the APIs of letters, ${listed(OWN_APIS, 'and')}.`,
)
  .option('--host <address>', 'address to listen on; 127.0.0.1 unless configured')
  .option('--port <number>', 'port to listen on, 0 for any free one; 1853 unless configured')
  .option(
    '--store <url>',
    'sqlite:PATH, sqlite::memory: or postgres://…; sqlite:./data/bartleby.db unless configured',
  )
  .option('--unsupported-store', UNSUPPORTED_STORE)
  .option('--config <file>', 'configuration in YAML')
  .option('--demo', 'serve an invented shop to look at: failing traffic, letters, and a past')
  .help(`Flags win over the environment (BARTLEBY_HOST, BARTLEBY_PORT, BARTLEBY_STORE, BARTLEBY_CONFIG), and that over the file.
On an address other than loopback the server starts only when tokens are configured.

With --demo everything is invented and happens in this process: queues, engines, an outbox, webhooks and reports fail now and then,
a storm of one error comes in the first minute, one group heals when it is sent back and one never does. It runs in memory and
leaves nothing behind; a store that is given must be new, or of a demo. The sections engines, outbox, webhooks and kafka of
a configuration are not used, and the log is at 'error' unless a level is configured.

Examples:
  $ bartleby serve
  $ bartleby serve --demo
  $ bartleby serve --port 9000 --store sqlite:/var/lib/bartleby/queues.db
  $ bartleby serve --store postgres://app:secret@db/bartleby --config bartleby.yaml

${EXIT_HELP}
  130, 143  a second Ctrl-C or SIGTERM cut the shutdown short`)
  .work(async ({ terminal }, { demo = false, ...flags }) => {
    const { checkExposure, loadWithLayers, originOf } = await import('../config/index.ts')
    const { config, layers } = loadWithLayers({ env: terminal.env, flags })
    checkExposure(config)
    const stopAsked = listenForStop()
    const isGiven = (key: string): boolean => originOf(layers, key) !== undefined
    const server = await startOrExplain(config, await starterOf(demo, isGiven, terminal))
    terminal.out(`bartleby listening on ${server.url}`)
    if (demo) terminal.out(FIRST_STEPS)
    await stopAsked
    await server.stop()
  })

const FIRST_STEPS =
  'demo: all of it is invented. Open the address in a browser, go to Signatures, and retry the letters of PeriodLocked: they heal.'

type Starter = (config: Config) => Promise<RunningServer>

async function starterOf(
  isDemo: boolean,
  isGiven: (key: string) => boolean,
  terminal: Terminal,
): Promise<Starter> {
  if (!isDemo) return (await import('../http/serve.ts')).serve
  const { serveDemo } = await import('../demo/serve-demo.ts')
  // Unless the user chose them, a demo has its own.
  const terms = { storeIsGiven: isGiven('store'), logLevelIsGiven: isGiven('log.level') }
  return (config) => serveDemo(config, { ...terms, say: (line) => terminal.out(line) })
}

async function startOrExplain(config: Config, start: Starter): Promise<RunningServer> {
  try {
    return await start(config)
  } catch (error) {
    if (isWrongOption(error)) throw failureOf(error, EXIT.usage)
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
