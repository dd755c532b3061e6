/** `bartleby queues produce|lease|complete|retry`: single items, by hand. */
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import type { Command } from 'commander'
import type { LeasedBatch } from '../../client/index.ts'
import { later } from '../../core/clock.ts'
import { parseGoDuration, usFromNs } from '../../core/duration.ts'
import { SystemClock } from '../../core/system-clock.ts'
import { formatTimestamp, parseTimestamp } from '../../core/timestamp.ts'
import { CommandFailure, EXIT, reasonOf } from '../exit.ts'
import { readAll, type Terminal, table } from '../terminal.ts'
import { type ConnectionFlags, serverCommand, wholeNumber, withClient } from './connection.ts'
import { itemForJson, json, preview } from './show.ts'

interface TimeFlags {
  readonly at?: string
  readonly in?: string
}

interface ProduceFlags extends ConnectionFlags, TimeFlags {
  readonly file?: string
  readonly kind?: string
  readonly encoding?: string
  readonly reference?: string
  readonly dedupeKey?: string
}

interface LeaseFlags extends ConnectionFlags {
  readonly limit?: string
  readonly wait?: string
  readonly clientId?: string
}

interface SettleFlags extends ConnectionFlags, TimeFlags {
  readonly partition?: string
  readonly dead?: boolean
  readonly errorClass?: string
  readonly errorMessage?: string
}

export const itemCommands = (terminal: Terminal): Command[] => [
  produce(terminal),
  lease(terminal),
  complete(terminal),
  retry(terminal),
]

function produce(terminal: Terminal): Command {
  return serverCommand(
    'produce <queue> [payload]',
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
    .action((queueName: string, argument: string | undefined, flags: ProduceFlags) =>
      withClient(flags, terminal, async (client) => {
        const enqueueAt = timeOf(flags)
        const item = {
          payload: await payloadOf(argument, flags.file, terminal),
          ...(flags.kind !== undefined && { kind: flags.kind }),
          ...(flags.encoding !== undefined && { encoding: flags.encoding }),
          ...(flags.reference !== undefined && { reference: flags.reference }),
          ...(flags.dedupeKey !== undefined && { dedupeKey: flags.dedupeKey }),
          ...(enqueueAt !== undefined && { enqueueAt }),
        }
        const receipt = await client.produceWithIds({ queueName, items: [item] })
        const [produced] = receipt.items
        if (flags.json) terminal.out(json({ partition: receipt.partition, ...produced }))
        else terminal.out(`${produced?.outcome} ${produced?.id} in partition ${receipt.partition}`)
      }),
    )
}

function lease(terminal: Terminal): Command {
  return serverCommand('lease <queue>', 'Take items from a queue for the length of its lease.', [
    'lease orders',
    'lease orders --limit 10 --wait 1m --json',
  ])
    .option('--limit <n>', 'how many items, up to 1000', '1')
    .option('--wait <duration>', 'how long to wait for an item', '5s')
    .option('--client-id <id>', 'unique among those who wait; made up unless given')
    .action((queueName: string, flags: LeaseFlags) =>
      withClient(flags, terminal, async (client) => {
        const batch = await client.lease({
          queueName,
          clientId: flags.clientId ?? `cli-${hostname()}-${process.pid}`,
          batchSize: wholeNumber('--limit', flags.limit, 1) ?? 1,
          requestTimeout: flags.wait ?? '5s',
        })
        terminal.out(flags.json ? json({ ...batch, items: batch.items.map(itemForJson) }) : leaseTable(batch))
      }),
    )
}

function leaseTable({ queueName, partition, items }: LeasedBatch): string {
  const rows = table(
    ['ID', 'ATTEMPTS', 'LEASED UNTIL', 'KIND', 'REFERENCE', 'PAYLOAD'],
    items.map((item) => [
      item.id,
      item.attempts,
      item.leaseDeadline.toISOString(),
      item.kind || '-',
      item.reference || '-',
      preview(item.payload),
    ]),
  )
  return `${rows}\nwhen done: bartleby queues complete ${queueName} --partition ${partition} ID…`
}

function complete(terminal: Terminal): Command {
  return serverCommand(
    'complete <queue> <ids...>',
    'Remove leased items: they are processed. All of them or none.',
    ['complete orders 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE', 'complete orders --partition 3 ID ID'],
  )
    .option('--partition <n>', 'the partition they were leased from', '0')
    .action((queueName: string, ids: string[], flags: SettleFlags) =>
      withClient(flags, terminal, async (client) => {
        await client.complete({
          queueName,
          ids,
          partition: wholeNumber('--partition', flags.partition, 0) ?? 0,
        })
        terminal.out(flags.json ? json({ completed: ids }) : `completed ${ids.length}`)
      }),
    )
}

function retry(terminal: Terminal): Command {
  return serverCommand('retry <queue> <ids...>', 'Give leased items back: at once, later, or as dead.', [
    'retry orders 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE --in 5m',
    "retry orders ID --dead --error-class NoSuchCustomer --error-message 'customer 17 is unknown'",
  ])
    .option('--partition <n>', 'the partition they were leased from', '0')
    .option('--at <time>', 'not before this time (RFC 3339)')
    .option('--in <duration>', 'not before this much later, for example 5m')
    .option('--dead', 'to the dead queue, or a letter without one')
    .option('--error-class <text>', 'what failed, for the letter')
    .option('--error-message <text>', 'and in which words')
    .action((queueName: string, ids: string[], flags: SettleFlags) =>
      withClient(flags, terminal, async (client) => {
        const retryAt = timeOf(flags)
        const fate = {
          ...(retryAt !== undefined && { retryAt }),
          ...(flags.dead && { dead: true }),
          ...(flags.errorClass !== undefined && { errorClass: flags.errorClass }),
          ...(flags.errorMessage !== undefined && { errorMessage: flags.errorMessage }),
        }
        await client.retry({
          queueName,
          partition: wholeNumber('--partition', flags.partition, 0) ?? 0,
          items: ids.map((id) => ({ id, ...fate })),
        })
        terminal.out(flags.json ? json({ retried: ids }) : `gave back ${ids.length}`)
      }),
    )
}

async function payloadOf(argument: string | undefined, file: string | undefined, terminal: Terminal) {
  if (argument !== undefined && file !== undefined) {
    throw new CommandFailure(EXIT.usage, 'give the payload as an argument or with --file, not both')
  }
  if (argument !== undefined) return argument
  if (file === undefined) {
    if (terminal.stdin.isTTY) terminal.err('reading the payload from the terminal; end it with Ctrl-D')
    return readAll(terminal.stdin)
  }
  try {
    return await readFile(file)
  } catch (error) {
    throw new CommandFailure(EXIT.usage, `--file cannot be read: ${reasonOf(error)}`, { cause: error })
  }
}

/** The time that `--at` or `--in` name, as RFC 3339. */
function timeOf({ at, in: delay }: TimeFlags): string | undefined {
  if (at !== undefined && delay !== undefined)
    throw new CommandFailure(EXIT.usage, 'give --at or --in, not both')
  if (at !== undefined) {
    if (!parseTimestamp(at).ok) {
      throw new CommandFailure(EXIT.usage, `--at is '${at}'; expected a time such as 2027-01-31T18:00:00Z`)
    }
    return at
  }
  if (delay === undefined) return undefined
  const duration = parseGoDuration(delay)
  if (!duration.ok || duration.ns < 0n) {
    throw new CommandFailure(EXIT.usage, `--in is '${delay}'; expected a duration such as 90s, 10m or 1h30m`)
  }
  return formatTimestamp(later(new SystemClock().now(), usFromNs(duration.ns)))
}
