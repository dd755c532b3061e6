/**
 * Cases of items that a call removes unprocessed. A sent-back letter is reopened, with the removal as its newest failure, in the
 * transaction that removes its item; a case without a letter is closed.
 */
import { idFromSerial } from '../../core/ksuid.ts'
import { bury, type Cause, type Death, PLAIN_RECORD } from '../../letters/bury.ts'
import type { NewPosition } from '../../letters/change.ts'
import { closeCases } from '../../letters/confirm.ts'
import { isUnconfirmed, STATUS } from '../../letters/letter.ts'
import { type CaseRow, lockLettersOf } from '../../letters/locked.ts'
import type { Registers } from '../../letters/registers.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { count, emptiestPartition, instantSum } from '../counts.ts'
import { allocateSerials, expectLetters, readQueue } from '../records.ts'
import type { RemovedCase } from '../sql/remove.ts'
import type { Announce } from './put.ts'

/** Calls that remove items, and the failure each records; `{queue}` is the item's queue. */
const REMOVALS = {
  'queues.clear': {
    errorClass: 'Cleared',
    errorMessage: 'its queue {queue} was cleared before it was processed',
  },
  'queues.delete': {
    errorClass: 'QueueDeleted',
    errorMessage: 'its queue {queue} was deleted before it was processed',
  },
  'items.delete': {
    errorClass: 'ItemDeleted',
    errorMessage: 'it was deleted from its queue {queue} before it was processed',
  },
} as const

export interface RemovalContext {
  readonly registers: Registers
  /** Wakes those who wait for letters in a dead queue. */
  readonly announce: Announce
}

export interface Removal {
  readonly by: keyof typeof REMOVALS
  /** Beginning of the items' ids; empty when their partition is gone. */
  readonly idPrefix: string
}

/** Reopens the letters of removed items, and closes the cases that have no letter. */
export async function reopenRemoved(
  work: OfficeWork,
  { registers, announce }: RemovalContext,
  { by, idPrefix }: Removal,
  removed: readonly RemovedCase[],
): Promise<void> {
  if (removed.length === 0) return
  const letters = await lockLettersOf(
    work.tx,
    removed.map(({ caseId }) => caseId),
  )
  // In the order in which they would have been processed.
  const reopened = removed.flatMap((item) => {
    const letter = letters.get(item.caseId)
    const waits = letter?.status === STATUS.Resolved && isUnconfirmed(letter)
    return letter !== undefined && waits ? [{ item, letter }] : []
  })
  const deaths: Death[] = []
  for (const [deadQueue, mine] of Map.groupBy(reopened, ({ letter }) => letter.deadQueue)) {
    const places = await placesIn(work, announce, deadQueue, mine.length)
    for (const [i, { item, letter }] of mine.entries())
      deaths.push({
        cause: causeOf(by, letter),
        caseId: letter.id,
        sourceId: letter.sentAs ?? '',
        diedAs: idPrefix === '' ? letter.sentAs : idFromSerial(idPrefix, item.serial),
        attempts: item.attempts,
        position: places[i] ?? null,
      })
  }
  await bury(work, registers, { letters, end: async () => {}, all: unexpected, each: unexpected }, deaths)
  const unfiled = removed.filter(({ caseId }) => !letters.has(caseId))
  await closeCases(
    work.tx,
    unfiled.map(({ caseId }) => caseId),
  )
}

/** Never called: all of them have letters. */
const unexpected = (): never => {
  throw new Error('an item was removed that has no letter')
}

const causeOf = (by: keyof typeof REMOVALS, { source, engine, queue }: CaseRow): Cause => ({
  source,
  engine,
  queue,
  reason: 'failed',
  errorClass: REMOVALS[by].errorClass,
  errorMessage: REMOVALS[by].errorMessage.replace('{queue}', () => `'${queue}'`),
  errorStack: null,
  failedBy: by,
  record: { ...PLAIN_RECORD, actor: by },
})

/** Places at the tail of a dead queue, counted; none when there is no such queue. */
export async function placesIn(
  { tx, now, afterCommit }: OfficeWork,
  announce: Announce,
  name: string | null,
  letters: number,
): Promise<readonly NewPosition[]> {
  const queue = name === null ? null : await readQueue(tx, name)
  if (queue === null) return []
  await expectLetters(tx, queue)
  const { queueName } = queue
  const { part } = await emptiestPartition(tx, queue)
  const serials = await allocateSerials(tx, letters)
  count(tx, part, { ready: letters, dead: letters, created: instantSum(now, letters) })
  afterCommit(() => announce([{ queueName, part, firstSerial: serials[0] ?? 0 }], null))
  return serials.map((serial) => ({ deadQueue: queueName, part, serial, laidAt: now }))
}
