/** `bartleby queues stats|clear|peek`: what lies in a queue. */
import type { Command } from 'commander'
import { type ItemContent, type PeekedItem, type QueueStats, textOf } from '../../client/index.ts'
import { usage } from '../exit.ts'
import { confirmName, wholeNumber } from '../flags.ts'
import { type OfficeFlags, officeCommand } from '../office.ts'
import { table } from '../table.ts'
import { printable, type Terminal } from '../terminal.ts'

interface ClearFlags extends OfficeFlags {
  readonly queued?: boolean
  readonly leased?: boolean
  readonly scheduled?: boolean
  readonly yes?: boolean
}

interface PeekFlags extends OfficeFlags {
  readonly partition: string
  readonly limit: string
}

export const statsCommand = (terminal: Terminal): Command =>
  officeCommand('queues stats <queue>', 'Count the items of a queue, by partition.', ['stats orders']).work(
    terminal,
    async ({ queues, print }, queueName: string) => {
      print(await queues.stats(queueName), statsTable)
    },
  )

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

export const clearCommand = (terminal: Terminal): Command =>
  officeCommand('queues clear <queue>', 'Delete items of a queue, in all partitions.', [
    'clear orders --queued',
    'clear orders --queued --leased --scheduled --yes',
  ])
    .option('--queued', 'items that wait to be leased')
    .option('--leased', 'with --queued: also items that are leased')
    .option('--scheduled', 'items that wait for their time')
    .option('-y, --yes', 'do not ask')
    .work(terminal, async ({ queues, print }, queueName: string, flags: ClearFlags) => {
      if (!flags.queued && !flags.scheduled) {
        throw usage('say what to delete: --queued, --scheduled or both')
      }
      if (flags.leased && !flags.queued) throw usage('--leased needs --queued')
      const kinds = (['queued', 'leased', 'scheduled'] as const).filter((kind) => flags[kind])
      const deed = `delete the ${kinds.join(', ')} items of '${queueName}'`
      await confirmName(deed, { kind: 'queue', name: queueName }, flags.yes, terminal)
      await queues.clear({
        queueName,
        queue: flags.queued ?? false,
        scheduled: flags.scheduled ?? false,
        destructive: flags.leased ?? false,
      })
      print({ cleared: queueName, kinds }, () => `cleared queue '${queueName}'`)
    })

export const peekCommand = (terminal: Terminal): Command =>
  officeCommand('queues peek <queue>', 'Show the next items of a queue without leasing them.', [
    'peek orders',
    'peek orders-dead --limit 100 --json',
  ])
    .option('--partition <n>', 'which partition', '0')
    .option('--limit <n>', 'how many items, up to 1000', '10')
    .work(terminal, async ({ queues, print }, queueName: string, flags: PeekFlags) => {
      const items = await queues.peek({
        queueName,
        partition: wholeNumber('--partition', flags.partition, 0),
        limit: wholeNumber('--limit', flags.limit, 1),
      })
      const none = `nothing to lease in partition ${flags.partition} of '${queueName}'`
      print(items.map(itemForJson), () => (items.length === 0 ? none : peekTable(items)))
    })

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

const PREVIEW_LENGTH = 60

/** An item for programs: the payload as base64, and as text where it is text. */
export function itemForJson<Item extends ItemContent>({ payload, ...item }: Item) {
  return {
    ...item,
    payload: textOf(payload) ?? null,
    payloadBase64: Buffer.from(payload).toString('base64'),
  }
}

/** The beginning of a payload for people. */
export function preview(payload: Uint8Array): string {
  const text = textOf(payload)
  if (text === undefined) return `<${payload.length} bytes>`
  const shown = printable(text)
  return shown.length <= PREVIEW_LENGTH ? shown : `${shown.slice(0, PREVIEW_LENGTH - 1)}…`
}
