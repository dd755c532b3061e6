/** `bartleby outbox dispatch`: delivers from a process of its own. */
import { Option } from 'commander'
import { BartlebyError } from '../../../core/errors.ts'
import { variableOf } from '../../../core/settings/environment.ts'
import { EXIT, failureOf } from '../../../terminal/exit.ts'
import { given } from '../../../terminal/flags.ts'
import { listenForStop, type Terminal } from '../../../terminal/terminal.ts'
import type { RunningDispatcher } from '../dispatcher/create-dispatcher.ts'
import type { Transport } from '../transports/transport.ts'
import {
  applicationDatabase,
  numberOf,
  pair,
  type TableFlags,
  tableCommand,
  tableOptionsOf,
} from './table-flags.ts'

interface Flags extends TableFlags {
  readonly to: string
  readonly header?: Readonly<Record<string, string>>
  readonly name: string
  readonly once?: boolean
  readonly logLevel: string
  readonly batchSize?: number
  readonly concurrency?: number
  readonly maxRetries?: number
  readonly pollIntervalSeconds?: number
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

export const dispatchCommand = tableCommand(
  'dispatch',
  'Deliver the messages of an outbox until stopped (SIGTERM or Ctrl-C), or all that are due now.',
)
  .adding<Flags>((command) =>
    command
      .requiredOption(
        '--to <where>',
        "'https://…' to post them there, or 'log' to only write a line for each",
      )
      .option('--header <name=value>', 'a header of every post; can be repeated', pair)
      .option('--once', 'deliver what is due now, and end')
      .option('--name <name>', 'what the outbox is called in log lines', 'outbox')
      .option('--batch-size <messages>', 'messages per claim (default: 100)', numberOf)
      .option('--concurrency <deliveries>', 'deliveries at the same time (default: 16)', numberOf)
      .option(
        '--max-retries <count>',
        'deliveries after the first before a message is dead (default: 5)',
        numberOf,
      )
      .option('--poll-interval-seconds <seconds>', 'how often to look unasked (default: 5)', numberOf)
      .addOption(new Option('--log-level <level>', 'lines go to stderr').choices(LOG_LEVELS).default('info')),
  )
  .help(`Any number of these may run on one table, beside each other and beside servers: no message is delivered by two
at once, and one that is killed leaves its messages to the others. What cannot be delivered is marked dead in the
table; a server that has the outbox in its configuration makes letters of those.
With a secret in BARTLEBY_OUTBOX_SECRET (whsec_…) posts are signed in the manner of Standard Webhooks.

Examples:
  $ bartleby outbox dispatch --url postgres://app:secret@db/shop --to https://billing.example/events
  $ bartleby outbox dispatch --url sqlite:./shop.db --to log --once

Exit codes:
  0    stopped in good order, or everything that was due was tried
  1    it failed
  2    wrong usage
  3    the database is not there or cannot be reached, or the table is no outbox
  130, 143  a second Ctrl-C or SIGTERM cut the shutdown short`)
  .work(async ({ terminal }, flags) => {
    const dispatcher = await create(flags, terminal)
    const stopAsked = listenForStop()
    try {
      if (flags.once) await Promise.race([dispatcher.drain(), stopAsked])
      else {
        await dispatcher.start()
        await stopAsked
      }
    } catch (error) {
      throw failureOf(error, EXIT.nothing)
    } finally {
      await dispatcher.stop()
    }
    const { dispatched, failures } = dispatcher.meter.snapshot()
    terminal.out(`${dispatched} delivered, ${failures} failed attempts`)
  })

async function create(flags: Flags, terminal: Terminal): Promise<RunningDispatcher> {
  const { to, name, logLevel, batchSize, concurrency, maxRetries, pollIntervalSeconds } = flags
  await applicationDatabase(flags.url)
  // Loaded only when needed, as in `serve`.
  const [{ pino }, { createDispatcher }, transport] = await Promise.all([
    import('pino'),
    import('../dispatcher/create-dispatcher.ts'),
    to === 'log' ? null : posting(flags, terminal),
  ])
  const log = pino({ level: logLevel }, pino.destination(2))
  const { logTransport } = await import('../transports/transport.ts')
  try {
    return createDispatcher({
      url: flags.url,
      ...tableOptionsOf(flags),
      ...given({ batchSize, concurrency, maxRetries, pollIntervalSeconds }),
      name,
      log,
      transport: transport ?? logTransport({ log }),
    })
  } catch (error) {
    throw failureOf(error, error instanceof BartlebyError ? EXIT.usage : EXIT.nothing)
  }
}

async function posting({ to, header }: Flags, { env }: Terminal): Promise<Transport> {
  const { httpTransport } = await import('../transports/http.ts')
  const secret = variableOf(env, 'BARTLEBY_OUTBOX_SECRET')
  try {
    return httpTransport({ url: to, ...(header && { headers: header }), ...(secret && { secret }) })
  } catch (error) {
    throw failureOf(error, EXIT.usage)
  }
}
