/** `bartleby queues produce|lease|complete|retry|stats|clear|peek`: single items by hand. */
import { hostname } from 'node:os'
import {
  type ItemContent,
  type LeasedBatch,
  type PeekedItem,
  type QueueStats,
  textOf,
} from '../../../client/index.ts'
import { later } from '../../../core/clock.ts'
import { usFromNs } from '../../../core/duration.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import { formatTimestamp, parseTimestamp } from '../../../core/timestamp.ts'
import { usage } from '../../../terminal/exit.ts'
import { confirmName, durationNs, given, readNamed, wholeNumber } from '../../../terminal/flags.ts'
import { officeCommand } from '../../../terminal/office.ts'
import { tableOf } from '../../../terminal/table.ts'
import { printable, readAll, type Terminal } from '../../../terminal/terminal.ts'

export const produceCommand = officeCommand(
  'queues produce <queue> [payload]',
  'Put one item in a queue; its payload is the argument, a file or stdin.',
  [
    'produce orders \'{"order":1}\' --kind order',
    'produce orders --file order.bin --in 10m',
    'produce orders < order.json',
  ],
)
  .option('--file <path>', 'read the payload from this file')
  .option('--kind <text>', 'what the payload is')
  .option('--encoding <text>', 'how it is written')
  .option('--reference <text>', 'a note of yours')
  .option('--at <time>', 'deliver not before this time (RFC 3339)')
  .option('--in <duration>', 'deliver not before this much later, for example 10m')
  .option('--dedupe-key <key>', 'add nothing when this key was used recently')
  .work(async ({ queues, print, terminal }, queueName, argument, flags) => {
    const { kind, encoding, reference, dedupeKey } = flags
    const item = {
      ...given({ kind, encoding, reference, dedupeKey, enqueueAt: timeOf(flags) }),
      payload: await payloadOf(argument, flags.file, terminal),
    }
    const { partition, items } = await queues.produceWithIds({ queueName, items: [item] })
    const [produced] = items
    print({ partition, ...produced }, () => `${produced?.outcome} ${produced?.id} in partition ${partition}`)
  })

export const leaseCommand = officeCommand(
  'queues lease <queue>',
  'Take items from a queue for the length of its lease.',
  ['lease orders', 'lease orders --limit 10 --wait 1m --json'],
)
  .option('--limit <n>', 'how many items, up to 1000', '1')
  .option('--wait <duration>', 'how long to wait for an item', '5s')
  .option('--client-id <id>', 'unique among those who wait; made up unless given')
  .work(async ({ queues, print }, queueName, flags) => {
    const batch = await queues.lease({
      queueName,
      clientId: flags.clientId ?? `cli-${hostname()}-${process.pid}`,
      batchSize: wholeNumber('--limit', flags.limit, 1),
      requestTimeout: flags.wait,
    })
    print({ ...batch, items: batch.items.map(itemForJson) }, () => leaseTable(batch))
  })

function leaseTable({ queueName, partition, items }: LeasedBatch): string {
  const rows = tableOf(items, {
    ID: ({ id }) => id,
    ATTEMPTS: ({ attempts }) => attempts,
    'LEASED UNTIL': ({ leaseDeadline }) => leaseDeadline.toISOString(),
    ...CONTENT,
  })
  return `${rows}\nwhen done: bartleby queues complete ${queueName} --partition ${partition} ID…`
}

const CONTENT = {
  KIND: ({ kind }: ItemContent) => kind || '-',
  REFERENCE: ({ reference }: ItemContent) => reference || '-',
  PAYLOAD: ({ payload }: ItemContent) => preview(payload),
}

export const completeCommand = officeCommand(
  'queues complete <queue> <ids...>',
  'Remove leased items: they are processed. All of them or none.',
  ['complete orders 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE', 'complete orders --partition 3 ID ID'],
)
  .option('--partition <n>', 'the partition they were leased from', '0')
  .work(async ({ queues, print }, queueName, ids, flags) => {
    const partition = wholeNumber('--partition', flags.partition, 0)
    await queues.complete({ queueName, ids, partition })
    print({ completed: ids }, () => `completed ${ids.length}`)
  })

export const retryCommand = officeCommand(
  'queues retry <queue> <ids...>',
  'Give leased items back: at once, later, or as dead.',
  [
    'retry orders 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE --in 5m',
    "retry orders ID --dead --error-class NoSuchCustomer --error-message 'customer 17 is unknown'",
  ],
)
  .option('--partition <n>', 'the partition they were leased from', '0')
  .option('--at <time>', 'not before this time (RFC 3339)')
  .option('--in <duration>', 'not before this much later, for example 5m')
  .option('--dead', 'to the dead queue, or a letter without one')
  .option('--error-class <text>', 'what failed, for the letter')
  .option('--error-message <text>', 'and in which words')
  .work(async ({ queues, print }, queueName, ids, flags) => {
    const { dead, errorClass, errorMessage } = flags
    const fate = given({ retryAt: timeOf(flags), dead, errorClass, errorMessage })
    const partition = wholeNumber('--partition', flags.partition, 0)
    await queues.retry({ queueName, partition, items: ids.map((id) => ({ id, ...fate })) })
    print({ retried: ids }, () => `gave back ${ids.length}`)
  })

async function payloadOf(argument: string | undefined, file: string | undefined, terminal: Terminal) {
  if (argument !== undefined && file !== undefined)
    throw usage('give the payload as an argument or with --file, not both')
  if (argument !== undefined) return argument
  if (file !== undefined) return readNamed('--file', file, terminal)
  if (terminal.stdin.isTTY) terminal.err('reading the payload from the terminal; end it with Ctrl-D')
  return readAll(terminal.stdin)
}

/** As RFC 3339. */
function timeOf(flags: { readonly at?: string; readonly in?: string }): string | undefined {
  const { at, in: delay } = flags
  if (at !== undefined && delay !== undefined) throw usage('give --at or --in, not both')
  if (at !== undefined && !parseTimestamp(at).ok)
    throw usage(`--at is '${at}'; expected a time such as 2027-01-31T18:00:00Z`)
  if (delay === undefined) return at
  const ns = durationNs('--in', delay, 'such as 90s, 10m or 1h30m')
  return formatTimestamp(later(new SystemClock().now(), usFromNs(ns)))
}

export const statsCommand = officeCommand(
  'queues stats <queue>',
  'Count the items of a queue, by partition.',
  ['stats orders'],
).work(async ({ queues, print }, queueName) => print(await queues.stats(queueName), statsTable))

function statsTable({ partitions, leaseWaiting, inFlight }: QueueStats): string {
  const counts = tableOf(partitions, {
    PARTITION: ({ partition }) => partition,
    ITEMS: ({ total }) => total,
    LEASED: ({ totalLeased }) => totalLeased,
    SCHEDULED: ({ scheduled }) => scheduled,
    'AVERAGE AGE': ({ averageAge }) => averageAge,
    'LEASE LEFT': ({ averageLeasedAge }) => averageLeasedAge,
    FAILURES: ({ failures }) => failures,
  })
  return `${counts}\n${leaseWaiting} consumers waiting, ${inFlight} requests in flight`
}

export const clearCommand = officeCommand(
  'queues clear <queue>',
  'Delete items of a queue, in all partitions.',
  ['clear orders --queued', 'clear orders --queued --leased --scheduled --yes'],
)
  .option('--queued', 'items that wait to be leased')
  .option('--leased', 'with --queued: also items that are leased')
  .option('--scheduled', 'items that wait for their time')
  .option('-y, --yes', 'do not ask')
  .work(async ({ queues, print, terminal }, queueName, { yes, ...flags }) => {
    const { queued = false, leased = false, scheduled = false } = flags
    if (!queued && !scheduled) throw usage('say what to delete: --queued, --scheduled or both')
    if (leased && !queued) throw usage('--leased needs --queued')
    const kinds = (['queued', 'leased', 'scheduled'] as const).filter((kind) => flags[kind])
    const deed = `delete the ${kinds.join(', ')} items of '${queueName}'`
    await confirmName(deed, { kind: 'queue', name: queueName }, yes, terminal)
    await queues.clear({ queueName, queue: queued, scheduled, destructive: leased })
    print({ cleared: queueName, kinds }, () => `cleared queue '${queueName}'`)
  })

export const peekCommand = officeCommand(
  'queues peek <queue>',
  'Show the next items of a queue without leasing them.',
  ['peek orders', 'peek orders-dead --limit 100 --json'],
)
  .option('--partition <n>', 'which partition', '0')
  .option('--limit <n>', 'how many items, up to 1000', '10')
  .work(async ({ queues, print }, queueName, flags) => {
    const partition = wholeNumber('--partition', flags.partition, 0)
    const items = await queues.peek({ queueName, partition, limit: wholeNumber('--limit', flags.limit, 1) })
    const none = `nothing to lease in partition ${flags.partition} of '${queueName}'`
    print(items.map(itemForJson), () => (items.length === 0 ? none : peekTable(items)))
  })

const peekTable = (items: readonly PeekedItem[]): string =>
  tableOf(items, {
    ID: ({ id }) => id,
    ATTEMPTS: ({ attempts }) => attempts,
    CREATED: ({ createdAt }) => createdAt.toISOString(),
    'DIED IN': ({ death }) => (death === null ? '-' : `${death.queueName} (${death.reason})`),
    ...CONTENT,
  })

const PREVIEW_LENGTH = 60

/** The payload as base64, and as text where it is text. */
function itemForJson<Item extends ItemContent>({ payload, ...item }: Item) {
  return {
    ...item,
    payload: textOf(payload) ?? null,
    payloadBase64: Buffer.from(payload).toString('base64'),
  }
}

function preview(payload: Uint8Array): string {
  const text = textOf(payload)
  if (text === undefined) return `<${payload.length} bytes>`
  const shown = printable(text)
  return shown.length <= PREVIEW_LENGTH ? shown : `${shown.slice(0, PREVIEW_LENGTH - 1)}…`
}
