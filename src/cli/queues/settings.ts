/** `bartleby queues list|info|create|update|delete`: queues themselves. */
import { type Command, Option } from 'commander'
import { type Queue, type QueueClient, QueueClientError, type QueueSettings } from '../../client/index.ts'
import type { QueueOverview } from '../../client/source-types.ts'
import { createWithDeadQueue } from '../../client/with-dead-queue.ts'
import { withServer } from '../office-call.ts'
import type { Terminal } from '../terminal.ts'
import { nowMs } from '../times.ts'
import { listAll } from '../walk-list.ts'
import { type ConnectionFlags, confirm, serverCommand, wholeNumber, withClient } from './connection.ts'
import { depthsTable, json, queueCard, queuesTable } from './show.ts'

/** Queues per call when all are listed. */
const PAGE = 1000

interface SettingsFlags extends ConnectionFlags {
  readonly leaseTimeout?: string
  readonly expireTimeout?: string
  /** false: `--no-dead-queue`. */
  readonly deadQueue?: string | false
  readonly onDeath?: 'letter' | 'delete'
  readonly reference?: string
  readonly maxAttempts?: string
  readonly partitions?: string
}

export const settingsCommands = (terminal: Terminal): Command[] => [
  list(terminal),
  show(terminal),
  create(terminal),
  update(terminal),
  remove(terminal),
]

function list(terminal: Terminal): Command {
  return serverCommand('list', 'List all queues with what lies in them, or with their settings.', [
    'list',
    'list --settings',
    "list --json | jq '.[] | select(.letters > 0) | .name'",
  ])
    .option('--settings', 'show how they are set up')
    .action((flags: ConnectionFlags & { readonly settings?: boolean }) =>
      flags.settings ? listSettings(flags, terminal) : listDepths(flags, terminal),
    )
}

const NO_QUEUES = 'no queues yet; make one with `bartleby queues create NAME`'

const listDepths = (flags: ConnectionFlags, terminal: Terminal): Promise<void> =>
  withServer(flags, terminal, async (call) => {
    const queues = await listAll<QueueOverview>(call, '/api/queues', {})
    if (flags.json) terminal.out(json(queues))
    else terminal.out(queues.length === 0 ? NO_QUEUES : depthsTable(queues, nowMs()))
  })

const listSettings = (flags: ConnectionFlags, terminal: Terminal): Promise<void> =>
  withClient(flags, terminal, async (client) => {
    const queues = await allQueues(client)
    if (flags.json) terminal.out(json(queues))
    else terminal.out(queues.length === 0 ? NO_QUEUES : queuesTable(queues))
  })

/** Page after page; the pivot is part of the page it begins. */
async function allQueues(client: QueueClient): Promise<readonly Queue[]> {
  const queues: Queue[] = []
  for (;;) {
    const pivot = queues.pop()?.queueName
    const page = await client.list({ limit: PAGE, ...(pivot !== undefined && { pivot }) })
    queues.push(...page)
    if (page.length < PAGE) return queues
  }
}

function show(terminal: Terminal): Command {
  return serverCommand('info <queue>', 'Show the settings of a queue.', ['info orders']).action(
    (queueName: string, flags: ConnectionFlags) =>
      withClient(flags, terminal, (client) => print(client, queueName, flags, terminal)),
  )
}

function create(terminal: Terminal): Command {
  return serverCommand('create <queue>', 'Make a queue.', [
    'create orders --lease-timeout 5m --max-attempts 3 --dead-queue orders-dead',
    'create ticks --expire-timeout 1h --on-death delete',
  ])
    .option('--lease-timeout <duration>', 'how long a consumer keeps an item', '1m')
    .option('--expire-timeout <duration>', 'how long an item may wait before it is dead', '24h')
    .option('--max-attempts <n>', 'deliveries before an item is dead; 0 is unlimited', '0')
    .option(
      '--dead-queue <queue>',
      'where dead items go; created first, with the same timeouts, when it is missing',
    )
    .addOption(onDeath())
    .option('--partitions <n>', 'how many partitions', '1')
    .option('--reference <text>', 'a note of yours')
    .action((queueName: string, flags: SettingsFlags) =>
      withClient(flags, terminal, async (client) => {
        await createBoth(client, settingsOf(queueName, flags), flags.json ? terminal.err : terminal.out)
        if (flags.json) await print(client, queueName, flags, terminal)
        else terminal.out(`created queue '${queueName}'`)
      }),
    )
}

const onDeath = (): Option =>
  new Option(
    '--on-death <fate>',
    'what becomes of an item that dies while there is no dead queue; a new queue makes letters',
  ).choices(['letter', 'delete'])

/** The queue, and before it a dead queue that is missing; `say` is told of that one at once, since the other may still be refused. */
async function createBoth(
  client: QueueClient,
  settings: QueueSettings,
  say: (text: string) => void,
): Promise<void> {
  const { deadQueue = '', leaseTimeout = '', expireTimeout = '' } = settings
  await createWithDeadQueue({
    create: () => client.create(settings),
    createDeadQueue: async () => {
      await client.create({ queueName: deadQueue, leaseTimeout, expireTimeout, requestedPartitions: 1 })
      say(`created its dead queue '${deadQueue}' first: it was not there; it has the same timeouts`)
    },
    codeOf: (thrown) => (thrown instanceof QueueClientError ? thrown.code : null),
  })
}

function update(terminal: Terminal): Command {
  return serverCommand('update <queue>', 'Change settings of a queue; those not named stay.', [
    'update orders --max-attempts 5',
    'update orders --no-dead-queue',
    'update ticks --on-death delete',
  ])
    .option('--lease-timeout <duration>', 'how long a consumer keeps an item')
    .option('--expire-timeout <duration>', 'how long an item may wait before it is dead')
    .option('--max-attempts <n>', 'deliveries before an item is dead; 0 is unlimited')
    .option('--dead-queue <queue>', 'where dead items go')
    .option('--no-dead-queue', 'dead items go nowhere and are letters all the same')
    .addOption(onDeath())
    .option('--reference <text>', 'a note of yours')
    .action((queueName: string, flags: SettingsFlags) =>
      withClient(flags, terminal, async (client) => {
        const { maxAttempts, reference, deadQueue } = await client.info(queueName)
        // The call overwrites these three, so that what was not named has to be sent again.
        await client.update({ maxAttempts, reference, deadQueue, ...settingsOf(queueName, flags) })
        if (flags.json) await print(client, queueName, flags, terminal)
        else terminal.out(`updated queue '${queueName}'`)
      }),
    )
}

function remove(terminal: Terminal): Command {
  return serverCommand('delete <queue>', 'Remove a queue and all its items.', [
    'delete orders',
    'delete orders-dead --force --yes',
  ])
    .option('--force', 'also when it is the dead queue of another queue')
    .option('-y, --yes', 'do not ask')
    .action((queueName: string, flags: ConnectionFlags & { force?: boolean; yes?: boolean }) =>
      withClient(flags, terminal, async (client) => {
        await confirm(`delete the queue '${queueName}' and all its items`, queueName, flags.yes, terminal)
        await client.delete({ queueName, ...(flags.force && { force: true }) })
        terminal.out(flags.json ? json({ deleted: queueName }) : `deleted queue '${queueName}'`)
      }),
    )
}

/** Only what was given. */
function settingsOf(queueName: string, flags: SettingsFlags): QueueSettings {
  const maxAttempts = wholeNumber('--max-attempts', flags.maxAttempts, 0)
  const requestedPartitions = wholeNumber('--partitions', flags.partitions, 1)
  return {
    queueName,
    ...(flags.leaseTimeout !== undefined && { leaseTimeout: flags.leaseTimeout }),
    ...(flags.expireTimeout !== undefined && { expireTimeout: flags.expireTimeout }),
    ...(flags.deadQueue !== undefined && { deadQueue: flags.deadQueue || '' }),
    ...(flags.onDeath !== undefined && { onDeath: flags.onDeath }),
    ...(flags.reference !== undefined && { reference: flags.reference }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(requestedPartitions !== undefined && { requestedPartitions }),
  }
}

async function print(
  client: QueueClient,
  queueName: string,
  flags: ConnectionFlags,
  terminal: Terminal,
): Promise<void> {
  const queue = await client.info(queueName)
  terminal.out(flags.json ? json(queue) : queueCard(queue))
}
