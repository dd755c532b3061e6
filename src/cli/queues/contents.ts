/** `bartleby queues stats|clear|peek`: what lies in a queue. */
import type { Command } from 'commander'
import type { PeekedItem, QueueStats } from '../../client/index.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import { type Terminal, table } from '../terminal.ts'
import { type ConnectionFlags, confirm, serverCommand, wholeNumber, withClient } from './connection.ts'
import { itemForJson, json, preview } from './show.ts'

interface ClearFlags extends ConnectionFlags {
  readonly queued?: boolean
  readonly leased?: boolean
  readonly scheduled?: boolean
  readonly yes?: boolean
}

interface PeekFlags extends ConnectionFlags {
  readonly partition?: string
  readonly limit?: string
}

export const contentsCommands = (terminal: Terminal): Command[] => [
  stats(terminal),
  clear(terminal),
  peek(terminal),
]

function stats(terminal: Terminal): Command {
  return serverCommand('stats <queue>', 'Count the items of a queue, by partition.', ['stats orders']).action(
    (queueName: string, flags: ConnectionFlags) =>
      withClient(flags, terminal, async (client) => {
        const counted = await client.stats(queueName)
        terminal.out(flags.json ? json(counted) : statsTable(counted))
      }),
  )
}

function statsTable({ partitions, leaseWaiting, inFlight }: QueueStats): string {
  const counts = table(
    ['PARTITION', 'ITEMS', 'LEASED', 'SCHEDULED', 'AVERAGE AGE', 'LEASE LEFT', 'FAILURES'],
    partitions.map((partition) => [
      partition.partition,
      partition.total,
      partition.totalLeased,
      partition.scheduled,
      partition.averageAge,
      partition.averageLeasedAge,
      partition.failures,
    ]),
  )
  return `${counts}\n${leaseWaiting} consumers waiting, ${inFlight} requests in flight`
}

function clear(terminal: Terminal): Command {
  return serverCommand('clear <queue>', 'Delete items of a queue, in all partitions.', [
    'clear orders --queued',
    'clear orders --queued --leased --scheduled --yes',
  ])
    .option('--queued', 'items that wait to be leased')
    .option('--leased', 'with --queued: also items that are leased')
    .option('--scheduled', 'items that wait for their time')
    .option('-y, --yes', 'do not ask')
    .action((queueName: string, flags: ClearFlags) =>
      withClient(flags, terminal, async (client) => {
        if (!flags.queued && !flags.scheduled) {
          throw new CommandFailure(EXIT.usage, 'say what to delete: --queued, --scheduled or both')
        }
        if (flags.leased && !flags.queued) throw new CommandFailure(EXIT.usage, '--leased needs --queued')
        const kinds = (['queued', 'leased', 'scheduled'] as const).filter((kind) => flags[kind])
        await confirm(
          `delete the ${kinds.join(', ')} items of '${queueName}'`,
          queueName,
          flags.yes,
          terminal,
        )
        await client.clear({
          queueName,
          queue: flags.queued ?? false,
          scheduled: flags.scheduled ?? false,
          destructive: flags.leased ?? false,
        })
        terminal.out(flags.json ? json({ cleared: queueName, kinds }) : `cleared queue '${queueName}'`)
      }),
    )
}

function peek(terminal: Terminal): Command {
  return serverCommand('peek <queue>', 'Show the next items of a queue without leasing them.', [
    'peek orders',
    'peek orders-dead --limit 100 --json',
  ])
    .option('--partition <n>', 'which partition', '0')
    .option('--limit <n>', 'how many items, up to 1000', '10')
    .action((queueName: string, flags: PeekFlags) =>
      withClient(flags, terminal, async (client) => {
        const items = await client.peek({
          queueName,
          partition: wholeNumber('--partition', flags.partition, 0) ?? 0,
          limit: wholeNumber('--limit', flags.limit, 1) ?? 10,
        })
        if (flags.json) terminal.out(json(items.map(itemForJson)))
        else if (items.length === 0)
          terminal.out(`nothing to lease in partition ${flags.partition} of '${queueName}'`)
        else terminal.out(peekTable(items))
      }),
    )
}

function peekTable(items: readonly PeekedItem[]): string {
  return table(
    ['ID', 'ATTEMPTS', 'CREATED', 'DIED IN', 'KIND', 'REFERENCE', 'PAYLOAD'],
    items.map((item) => [
      item.id,
      item.attempts,
      item.createdAt.toISOString(),
      item.death === null ? '-' : `${item.death.queueName} (${item.death.reason})`,
      item.kind || '-',
      item.reference || '-',
      preview(item.payload),
    ]),
  )
}
