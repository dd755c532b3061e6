/**
 * Death: the one place where items leave their queue for good without having been completed. In the transaction of
 * whatever made them die they become letters, or reopen the letters they were sent back from; after a crash an item
 * lies in exactly one place. The letters file them; here is said what they died of, where their letters lie and how their
 * queue gives up their rows.
 */
import { instant } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { engineSourceId } from '../../core/source-id.ts'
import { type Cause, type Death, bury as fileDeaths, PLAIN_RECORD, type Taking } from '../../letters/bury.ts'
import { sourceOfEngines } from '../../letters/kinds.ts'
import { STATUS } from '../../letters/letter.ts'
import type { Registers } from '../../letters/registers.ts'
import { givenByKey } from '../../store/idioms.ts'
import { type CountChange, emptiestPartition, instantSum, lossOf, negated } from '../counts.ts'
import { type Cycle, type InDeadQueue, insistOn, Mismatch } from '../cycles/cycle.ts'
import { type MessageNames, readMessageNames } from '../engines/engine-queues.ts'
import type { DeathReason, FailedRun, GivenError } from '../queue.ts'
import { allocateSerials, itemIdIn, type Partition, readEngineOf, readQueue } from '../records.ts'
import { SHELF } from '../schema.ts'
import {
  fileItems,
  type Gone,
  readHolder,
  removeItems,
  type TakenItem,
  takeAll,
  takeOne,
  tallyItems,
} from '../sql/bury.ts'
import { type ItemFacts, lockItems } from '../sql/inspect.ts'
import { type Origin, removeRelapsed } from '../sql/move.ts'
import type { DeathPlace } from './death-order.ts'
import { buryLetters, forget } from './no-letter.ts'

/** What a death needs beside the cycle. */
export interface DeathDesk {
  readonly log: Log
  readonly registers: Registers
}

/** Items that die in one partition. All are leased or none is, and all were read or none was. */
interface DyingThere {
  readonly partition: Partition
  readonly dying: readonly Dying[]
}

/**
 * Makes letters of dying items of a shelf, in the dead queue that is configured now, or in none without one. Where the queue says so
 * then, they are deleted, but for those whose failure is on record or that were sent back from a letter. Order is kept. 'held': the queue
 * names a dead queue that does not exist, and nothing was changed.
 */
export async function bury(
  cycle: Cycle,
  shelf: number,
  given: readonly DyingThere[],
  desk: DeathDesk,
): Promise<'buried' | 'held'> {
  const { tx, queue } = cycle
  const there = given.filter(({ dying }) => dying.length > 0)
  if (there.length === 0) return 'buried'
  const [deadQueue, engine] = await Promise.all([
    queue.deadQueue === '' ? null : readQueue(tx, queue.deadQueue),
    readEngineOf(tx, queue.queueName),
  ])
  if (queue.deadQueue !== '' && deadQueue === null) {
    if (there.some(({ dying }) => dying[0]?.item.isUnread))
      throw new Mismatch('items that may not exist have no dead queue')
    return 'held'
  }
  const isDeleted = ({ item, run, error }: Dying): boolean =>
    queue.onDeath === 'delete' && deadQueue === null && run === null && error === null && item.caseId === null
  const sorted = await Promise.all(
    there.map(async ({ partition, dying }) => {
      const items = dying.filter(({ item }) => !item.isLetter)
      const kept = items.filter((each) => !isDeleted(each))
      return {
        partition,
        letters: dying.filter(({ item }) => item.isLetter),
        forgotten: items.filter(isDeleted),
        deaths: await deathsOf(cycle, partition, shelf, kept, engine),
      }
    }),
  )
  const placeOf = await place(
    cycle,
    sorted.flatMap(({ deaths }) => deaths),
    deadQueue !== null,
    desk.registers,
  )
  await lockRelapsed(cycle, shelf, there)
  for (const { partition, letters, forgotten, deaths } of sorted) {
    const to = deadQueue && {
      deadQueue: deadQueue.queueName,
      part: (await emptiestPartition(tx, deadQueue, (part) => cycle.changes.readyOf(part))).part,
    }
    if (letters.length > 0) await buryLetters(cycle, partition, letters, to)
    if (deaths.length > 0) await makeLetters(cycle, partition, shelf, deaths, placeOf, to, desk)
    if (forgotten.length > 0) await forget(cycle, partition, shelf, forgotten, desk.log)
  }
  return 'buried'
}

/** Gives all deaths their places in the dead queue and in time, at once: others wait for that. */
async function place(
  { tx, now, turn }: Cycle,
  deaths: readonly ItemDeath[],
  hasDeadQueue: boolean,
  { times }: Registers,
): Promise<(death: ItemDeath) => DeathPlace> {
  const give = async (those: readonly ItemDeath[]): Promise<DeathPlace[]> => {
    const serials = hasDeadQueue ? await allocateSerials(tx, those.length) : []
    return those.map(({ cause, instanceId }, i) => ({
      serial: serials[i] ?? null,
      capturedAt: instanceId === undefined ? null : times.take(cause.engine, instanceId, now),
    }))
  }
  const places = await (turn?.placesOf(deaths, hasDeadQueue, give) ?? give(deaths))
  const given = new Map(deaths.map(({ itemId }, i) => [itemId, places[i]]))
  return ({ itemId }) => given.get(itemId) ?? { serial: null, capturedAt: null }
}

/** Items before letters, as everybody locks them, and none before the turn: those that may have letters were only read so far. */
async function lockRelapsed({ tx }: Cycle, shelf: number, there: readonly DyingThere[]): Promise<void> {
  const ascending = there.toSorted((a, b) => a.partition.part - b.partition.part)
  await Promise.all(
    ascending.map(({ partition, dying }) => {
      const relapsed = dying.flatMap(({ item }) => (item.caseId === null ? [] : item.serial))
      return lockItems(tx, partition, relapsed, shelf)
    }),
  )
}

async function makeLetters(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  unplaced: readonly ItemDeath[],
  placeOf: (death: ItemDeath) => DeathPlace,
  to: InDeadQueue | null,
  { registers }: DeathDesk,
): Promise<void> {
  const { changes, now } = cycle
  const deaths = unplaced.map((death) => {
    const { serial, capturedAt } = placeOf(death)
    return {
      ...death,
      ...(capturedAt !== null && { capturedAt }),
      grave: to === null || serial === null ? null : { ...to, serial, laidAt: now },
    }
  })
  const { part, number } = partition
  const { leased = false, isUnread = false } = deaths[0]?.item ?? {}
  const from = { part, shelf, leased, isUnread, partition: number }
  const taking = takingItems(cycle, from, to)
  const buried = await fileDeaths(cycle, registers, taking, deaths)
  insistOn(deaths.length, buried.taken + buried.reopened)

  changes.add(part, lossOf(taking.ended, shelf))
  // The statement is ours, and says them.
  const gone = [...taking.gone, ...(buried.rows as readonly Gone[])]
  changes.add(part, goneOf(from, buried.taken, gone))
  const first = Math.min(...deaths.map(({ grave }) => grave?.serial ?? 0))
  if (to !== null) cycle.lettersArrived(to, buried.captured + buried.reopened, first)
}

export interface Dying {
  readonly item: ItemFacts
  readonly reason: DeathReason
  /** The run that was its last; null when none is known. */
  readonly run: FailedRun | null
  /** What its consumer says instead of a run; else null. */
  readonly error: GivenError | null
}

/** The words for deaths that nobody gave an error for. */
const PLAIN: Readonly<Record<DeathReason, { readonly errorClass: string; readonly errorMessage: string }>> = {
  attempts: {
    errorClass: 'AttemptsExhausted',
    errorMessage: 'the last permitted attempt ended without completion',
  },
  expired: { errorClass: 'Expired', errorMessage: 'it was not completed before its expire deadline' },
  rejected: { errorClass: 'Rejected', errorMessage: 'a consumer rejected it' },
  failed: { errorClass: 'Failed', errorMessage: 'its worker failed for good' },
}

/** An error as letters keep it, with `words` for what was not given. */
export const describeGiven = (
  error: GivenError | null,
  words: { readonly errorClass: string; readonly errorMessage: string },
) => ({
  errorClass: error?.errorClass || words.errorClass,
  errorMessage: error?.errorMessage || words.errorMessage,
  errorStack: error?.errorStack || null,
})

/** What items of one queue die of: one cause for all that have nothing of their own to tell. `engine` is null in a plain queue. */
function causesIn(queue: string, engine: string | null): (dying: Dying) => Cause {
  const shared = new Map<string, Cause>()
  return ({ reason, run, error }) => {
    if (run !== null) return causeOfRun(queue, run)
    const words = describeGiven(error, PLAIN[reason])
    const key = error === null ? reason : JSON.stringify([reason, ...Object.values(words)])
    const known = shared.get(key)
    if (known !== undefined) return known
    const where = engine === null ? PLAIN_ENGINE : { source: sourceOfEngines(), engine }
    const cause = { ...where, queue, reason, ...words, failedBy: null, record: PLAIN_RECORD }
    shared.set(key, cause)
    return cause
  }
}

const PLAIN_ENGINE = { source: 'queues', engine: 'queues' } as const

const causeOfRun = (queue: string, run: FailedRun): Cause => ({
  source: sourceOfEngines(),
  engine: run.engine,
  queue,
  reason: 'failed',
  errorClass: run.errorClass,
  errorMessage: run.errorMessage,
  errorStack: run.errorStack,
  failedBy: run.actor,
  record: {
    captured: run.operation,
    reopened: run.operation,
    status: 'Failed',
    durationMs: run.durationMs,
    actor: run.actor,
    input: run.input,
    output: run.output,
  },
})

/** An item that dies, with what its letter says. */
interface ItemDeath extends Death {
  readonly item: ItemFacts
  readonly itemId: string
}

const NAMELESS: MessageNames = { instanceId: null, correlationId: null }
const NO_NAMES: ReadonlyMap<number, MessageNames> = new Map()

/** The deaths of items that lie in one place; where their letters lie is not said yet. */
async function deathsOf(
  { tx, queue }: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  engine: string | null,
): Promise<ItemDeath[]> {
  const causeOf = causesIn(queue.queueName, engine)
  const names =
    engine === null
      ? NO_NAMES
      : await readMessageNames(
          tx,
          partition.part,
          shelf,
          dying.map(({ item }) => item.serial),
        )
  return dying.map((each) => {
    const { item, run } = each
    const itemId = itemIdIn(partition, item.serial)
    const cause = causeOf(each)
    const plain = {
      item,
      itemId,
      cause,
      caseId: item.caseId,
      sourceId: itemId,
      diedAs: itemId,
      attempts: item.attempts,
      grave: null,
    }
    // Without names: nothing is written about it that is not written about all that died of the same.
    if (cause.source === 'queues') return plain
    const sourceId = engineSourceId(itemId)
    const { instanceId, correlationId } = run ?? names.get(item.serial) ?? NAMELESS
    return {
      ...plain,
      sourceId,
      instanceId: instanceId ?? sourceId,
      ...(correlationId !== null && { correlationId }),
    }
  })
}

/** Where items lie, whether all are leased there, and whether they die without having been read. */
interface Place extends Origin {
  readonly partition: number
  readonly isUnread: boolean
}

/** What a place loses with items that a statement took, all leased there or none. Those that were not read are like most. */
function goneOf({ shelf, leased, isUnread }: Place, count: number, rows: readonly Gone[]): CountChange {
  const sum = (column: keyof Gone) => rows.reduce((all, row) => all + BigInt(row[column]), 0n)
  const instants = (of: 'created' | 'deadline') =>
    negated(instantSum(instant(sum(`${of}_s`) * 1_000_000n + sum(`${of}_us`)), 1))
  if (isUnread) insistOn(0, Number(sum('unlike')))
  return {
    ready: shelf === SHELF.queue && !leased ? -count : 0,
    leased: leased ? -count : 0,
    held: shelf === SHELF.held ? -count : 0,
    created: instants('created'),
    // An import may give one to an item that is not leased.
    ...(leased && { deadline: instants('deadline') }),
  }
}

const goneWith = ({ created_at, lease_deadline, case_id, attempts }: TakenItem): Gone => ({
  ...{ created_s: 0, created_us: created_at, deadline_s: 0, deadline_us: lease_deadline ?? 0 },
  unlike: case_id === null && Number(attempts) > 0 ? 0 : 1,
})

interface TakingItems extends Taking<ItemDeath> {
  /** Those that reopened their letters. */
  readonly ended: ItemFacts[]
  /** Sums over the others, on SQLite. */
  readonly gone: Gone[]
}

/** How items that lie in one place leave it; what reopens its letter must be as it was read. */
const takingItems = ({ tx, now }: Cycle, from: Place, to: InDeadQueue | null): TakingItems => ({
  ended: [],
  gone: [],
  async end(deaths, letters) {
    // The letter of an item is resolved as long as the item is out. One that is pending was reported anew, and its item lost its case since.
    const out = deaths.filter(
      ({ caseId }) => caseId !== null && letters.get(caseId)?.status !== STATUS.Pending,
    )
    insistOn(deaths.length, out.length)
    const items = deaths.map(({ item }) => item)
    await removeRelapsed(tx, from, items)
    this.ended.push(...items)
  },
  all(deaths, notes) {
    const [serials, given] = givenByKey(
      ['id', 'note', 'item_id', 'serial', 'source_id'],
      deaths.map(({ item, itemId, sourceId, grave }, i) => ({
        id: item.serial,
        note: notes[i] ?? 0,
        item_id: itemId,
        serial: grave?.serial,
        source_id: sourceId === itemId ? null : sourceId,
      })),
    )
    const values = [
      serials,
      given,
      from.part,
      from.shelf,
      from.leased ? 1 : 0,
      to?.part ?? null,
      to === null ? null : now,
      to?.deadQueue ?? null,
      from.partition,
      from.isUnread,
    ]
    return { statement: takeAll, values }
  },
  alike(deaths, first) {
    const given = deaths.map(({ item, itemId, grave }) => [item.serial, itemId, grave?.serial ?? null])
    const [laidAt, leased] = [to === null ? null : now, from.leased ? 1 : 0]
    const serials = deaths.map(({ item }) => item.serial)
    return {
      statement: fileItems,
      values: [
        ...[first, laidAt, to?.part ?? null, from.partition, to?.deadQueue ?? null],
        ...[JSON.stringify(given), from.part, from.shelf, leased],
      ],
      remove: async () => {
        this.gone.push(...(await tx.rows<Gone>(tallyItems, from.part, from.shelf, serials, leased)))
        return tx.run(removeItems, from.part, from.shelf, serials, leased)
      },
    }
  },
  async each({ item, itemId }) {
    const [row] = await tx.rows<TakenItem>(takeOne, from.part, from.shelf, item.serial, from.leased ? 1 : 0)
    insistOn(1, row === undefined ? 0 : 1)
    if (row === undefined) return null
    this.gone.push(goneWith(row))
    if (to !== null && (await tx.rows(readHolder, to.part, itemId)).length > 0) return null
    return {
      itemCreatedAt: instant(BigInt(row.created_at)),
      dequeueCount: Number(row.attempts),
      partition: from.partition,
      encoding: row.encoding,
      kind: row.kind,
      reference: row.reference,
      headers: null,
      payload: row.payload,
    }
  },
})
