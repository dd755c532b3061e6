/** `bartleby queues …`: queues of a running server. */
import { type Command, Option } from 'commander'
import { type Queue, type QueueClient, QueueClientError, type QueueSettings } from '../../../client/index.ts'
import { createWithDeadQueue } from '../../../client/with-dead-queue.ts'
import type { QueueView } from '../../../queues/shapes.ts'
import { commandGroup } from '../../../terminal/command.ts'
import { confirmName, given, wholeNumber } from '../../../terminal/flags.ts'
import { type Desk, listAll, officeCommand, SERVER_HELP, type TextFlags } from '../../../terminal/office.ts'
import { table, tableOf } from '../../../terminal/table.ts'
import { ageOf, nowMs } from '../../../terminal/words.ts'
import {
  clearCommand,
  completeCommand,
  leaseCommand,
  peekCommand,
  produceCommand,
  retryCommand,
  statsCommand,
} from './items.ts'

const PAGE = 1000

const listCommand = officeCommand(
  'queues list',
  'List all queues with what lies in them, or with their settings.',
  ['list', 'list --settings', "list --json | jq '.[] | select(.letters > 0) | .name'"],
)
  .option('--settings', 'show how they are set up')
  .work((desk, { settings }) => (settings ? listSettings(desk) : listDepths(desk)))

const NO_QUEUES = 'no queues yet; make one with `bartleby queues create NAME`'

async function listDepths(desk: Desk): Promise<void> {
  const queues = await listAll<QueueView>(desk, '/api/queues', {})
  desk.print(queues, () => (queues.length === 0 ? NO_QUEUES : depthsTable(queues, nowMs())))
}

async function listSettings({ queues: client, print }: Desk): Promise<void> {
  const queues = await allQueues(client)
  print(queues, () => (queues.length === 0 ? NO_QUEUES : queuesTable(queues)))
}

/** The pivot is part of the page it begins. */
async function allQueues(client: QueueClient): Promise<readonly Queue[]> {
  const queues: Queue[] = []
  for (;;) {
    const pivot = queues.pop()?.queueName
    const page = await client.list({ limit: PAGE, ...(pivot !== undefined && { pivot }) })
    queues.push(...page)
    if (page.length < PAGE) return queues
  }
}

const infoCommand = officeCommand('queues info <queue>', 'Show the settings of a queue.', [
  'info orders',
]).work(show)

interface DeathFlags {
  readonly onDeath?: 'letter' | 'delete'
}

const onDeath = (command: Command) =>
  command.addOption(
    new Option(
      '--on-death <fate>',
      'what becomes of an item that dies while there is no dead queue; a new queue makes letters',
    ).choices(['letter', 'delete']),
  )

const createCommand = officeCommand('queues create <queue>', 'Make a queue.', [
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
  .adding<DeathFlags>(onDeath)
  .option('--partitions <n>', 'how many partitions', '1')
  .option('--reference <text>', 'a note of yours')
  .work(async (desk, queueName, flags) => {
    const { json, queues, terminal } = desk
    await createBoth(queues, settingsOf(queueName, flags), json ? terminal.err : terminal.out)
    if (json) await show(desk, queueName)
    else terminal.out(`created queue '${queueName}'`)
  })

/** `say` hears of a made dead queue at once: the queue may still be refused. */
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

const updateCommand = officeCommand(
  'queues update <queue>',
  'Change settings of a queue; those not named stay.',
  ['update orders --max-attempts 5', 'update orders --no-dead-queue', 'update ticks --on-death delete'],
)
  .option('--lease-timeout <duration>', 'how long a consumer keeps an item')
  .option('--expire-timeout <duration>', 'how long an item may wait before it is dead')
  .option('--max-attempts <n>', 'deliveries before an item is dead; 0 is unlimited')
  .adding<{ readonly deadQueue?: string | false }>((command) =>
    command
      .option('--dead-queue <queue>', 'where dead items go')
      .option('--no-dead-queue', 'dead items go nowhere and are letters all the same'),
  )
  .adding<DeathFlags>(onDeath)
  .option('--reference <text>', 'a note of yours')
  .work(async (desk, queueName, flags) => {
    const { maxAttempts, reference, deadQueue } = await desk.queues.info(queueName)
    // The call always sets these three.
    await desk.queues.update({ maxAttempts, reference, deadQueue, ...settingsOf(queueName, flags) })
    if (desk.json) await show(desk, queueName)
    else desk.terminal.out(`updated queue '${queueName}'`)
  })

const deleteCommand = officeCommand('queues delete <queue>', 'Remove a queue and all its items.', [
  'delete orders',
  'delete orders-dead --force --yes',
])
  .option('--force', 'also when it is the dead queue of another queue')
  .option('-y, --yes', 'do not ask')
  .work(async ({ queues, print, terminal }, queueName, { force, yes }) => {
    const deed = `delete the queue '${queueName}' and all its items`
    await confirmName(deed, { kind: 'queue', name: queueName }, yes, terminal)
    await queues.delete({ queueName, ...(force && { force }) })
    print({ deleted: queueName }, () => `deleted queue '${queueName}'`)
  })

interface SettingsFlags
  extends DeathFlags,
    TextFlags<'leaseTimeout' | 'expireTimeout' | 'reference' | 'maxAttempts' | 'partitions'> {
  /** False: `--no-dead-queue`. */
  readonly deadQueue?: string | false
}

function settingsOf(queueName: string, flags: SettingsFlags): QueueSettings {
  const { leaseTimeout, expireTimeout, deadQueue, onDeath, reference } = flags
  const settings = {
    leaseTimeout,
    expireTimeout,
    deadQueue: deadQueue === false ? '' : deadQueue,
    onDeath,
    reference,
    maxAttempts: wholeNumber('--max-attempts', flags.maxAttempts, 0),
    requestedPartitions: wholeNumber('--partitions', flags.partitions, 1),
  }
  return { queueName, ...given(settings) }
}

async function show({ queues, print }: Desk, queueName: string): Promise<void> {
  print(await queues.info(queueName), queueCard)
}

const queuesTable = (queues: readonly Queue[]): string =>
  tableOf(queues, {
    QUEUE: ({ queueName }) => queueName,
    LEASE: ({ leaseTimeout }) => leaseTimeout,
    EXPIRE: ({ expireTimeout }) => expireTimeout,
    ATTEMPTS: attemptsOf,
    'DEAD QUEUE': ({ deadQueue }) => deadQueue || '-',
    PARTITIONS: ({ requestedPartitions }) => requestedPartitions,
    REFERENCE: ({ reference }) => reference || '-',
  })

const depthsTable = (queues: readonly QueueView[], now: number): string =>
  tableOf(queues, {
    QUEUE: ({ name }) => name,
    READY: ({ ready }) => ready,
    LEASED: ({ leased }) => leased,
    SCHEDULED: ({ scheduled }) => scheduled,
    HELD: ({ held }) => held,
    DEAD: ({ dead }) => dead,
    LETTERS: ({ letters }) => letters,
    OLDEST: ({ oldestAtUtc }) => ageOf(oldestAtUtc, now),
    ATTEMPTS: attemptsOf,
    'DEAD QUEUE': ({ deadQueue, onDeath }) => deadQueue ?? (onDeath === 'delete' ? '- (deleted)' : '-'),
  })

function queueCard(queue: Queue): string {
  return table(
    ['queue', queue.queueName],
    [
      ['lease timeout', queue.leaseTimeout],
      ['expire timeout', queue.expireTimeout],
      ['max attempts', attemptsOf(queue)],
      ['dead queue', queue.deadQueue || '-'],
      ['partitions', String(queue.requestedPartitions)],
      ['reference', queue.reference || '-'],
      ['created', queue.createdAt.toISOString()],
      ['updated', queue.updatedAt.toISOString()],
    ],
  )
}

const attemptsOf = ({ maxAttempts }: Pick<Queue, 'maxAttempts'>): string =>
  maxAttempts === 0 ? 'unlimited' : String(maxAttempts)

export const queuesCommand = commandGroup(
  'queues',
  'Work with the queues of a running server.',
  `${SERVER_HELP}
Durations are written like 90s, 10m or 1h30m.

Examples:
  $ bartleby queues create orders --max-attempts 3
  $ bartleby queues produce orders '{"order":1}'
  $ bartleby queues lease orders
  $ bartleby queues list                           what lies in each queue, and what died there
  $ bartleby queues list --settings                how each is set up
  $ bartleby letters list 'source:queues queue:orders'`,
  [
    listCommand,
    infoCommand,
    createCommand,
    updateCommand,
    deleteCommand,
    statsCommand,
    clearCommand,
    peekCommand,
    produceCommand,
    leaseCommand,
    completeCommand,
    retryCommand,
  ],
)
