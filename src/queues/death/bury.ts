/**
 * Death: the one place where items leave their queue without having been completed. They become letters, or reopen the letters they
 * were sent back from, in the transaction that killed them. The letters module files them; this one says what they died of, where their
 * letters go and how their rows leave the queue.
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
  sumItems,
  type TakenItem,
  takeAll,
  takeOne,
} from '../sql/bury.ts'
import { type ItemFacts, lockItems } from '../sql/inspect.ts'
import { type Origin, removeReopened } from '../sql/move.ts'
import { buryLetters, forget } from './dead-queue.ts'
import type { DeathPlace } from './death-order.ts'

export interface DeathContext {
  readonly log: Log
  readonly registers: Registers
}

/** Items dying in one partition: all leased or none, all read or none. */
interface DyingThere {
  readonly partition: Partition
  readonly dying: readonly Dying[]
}

/**
 * Makes letters of dying items, in order: in the configured dead queue, or in none. With `on_death: delete` and no dead queue, items
 * without a recorded failure or a case are deleted instead. 'held' means that the named dead queue does not exist and nothing changed.
 */
export async function bury(
  cycle: Cycle,
  shelf: number,
  given: readonly DyingThere[],
  context: DeathContext,
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
    context.registers,
  )
  await lockSentBack(cycle, shelf, there)
  for (const { partition, letters, forgotten, deaths } of sorted) {
    const to = deadQueue && {
      deadQueue: deadQueue.queueName,
      part: (await emptiestPartition(tx, deadQueue, (part) => cycle.changes.readyOf(part))).part,
    }
    if (letters.length > 0) await buryLetters(cycle, partition, letters, to)
    if (deaths.length > 0) await makeLetters(cycle, partition, shelf, deaths, placeOf, to, context)
    if (forgotten.length > 0) await forget(cycle, partition, shelf, forgotten, context.log)
  }
  return 'buried'
}

/** Gives all deaths their places in the dead queue and in time, in one step: other cycles wait for it. */
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

/** Locks sent-back items before their letters, as everybody does, and only in this cycle's turn; they were only read so far. */
async function lockSentBack({ tx }: Cycle, shelf: number, there: readonly DyingThere[]): Promise<void> {
  const ascending = there.toSorted((a, b) => a.partition.part - b.partition.part)
  await Promise.all(
    ascending.map(({ partition, dying }) => {
      const sentBack = dying.flatMap(({ item }) => (item.caseId === null ? [] : item.serial))
      return lockItems(tx, partition, sentBack, shelf)
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
  { registers }: DeathContext,
): Promise<void> {
  const { changes, now } = cycle
  const deaths = unplaced.map((death) => {
    const { serial, capturedAt } = placeOf(death)
    return {
      ...death,
      ...(capturedAt !== null && { capturedAt }),
      position: to === null || serial === null ? null : { ...to, serial, laidAt: now },
    }
  })
  const { part, number } = partition
  const { leased = false, isUnread = false } = deaths[0]?.item ?? {}
  const from = { part, shelf, leased, isUnread, partition: number }
  const taking = takingItems(cycle, from, to)
  const buried = await fileDeaths(cycle, registers, taking, deaths)
  insistOn(deaths.length, buried.taken + buried.reopened)

  changes.add(part, lossOf(taking.ended, shelf))
  // The cast holds: the statement is ours and returns these columns.
  const gone = [...taking.gone, ...(buried.rows as readonly Gone[])]
  changes.add(part, goneOf(from, buried.taken, gone))
  const first = Math.min(...deaths.map(({ position }) => position?.serial ?? 0))
  if (to !== null) cycle.lettersArrived(to, buried.captured + buried.reopened, first)
}

export interface Dying {
  readonly item: ItemFacts
  readonly reason: DeathReason
  /** Its last run, if known. */
  readonly run: FailedRun | null
  /** The error given instead of a run. */
  readonly error: GivenError | null
}

/** Words for deaths without an error. */
const PLAIN: Readonly<Record<DeathReason, { readonly errorClass: string; readonly errorMessage: string }>> = {
  attempts: {
    errorClass: 'AttemptsExhausted',
    errorMessage: 'the last permitted attempt ended without completion',
  },
  expired: { errorClass: 'Expired', errorMessage: 'it was not completed before its expire deadline' },
  rejected: { errorClass: 'Rejected', errorMessage: 'a consumer rejected it' },
  failed: { errorClass: 'Failed', errorMessage: 'its worker failed for good' },
}

/** An error as letters keep it; `words` fill the gaps. */
export const describeGiven = (
  error: GivenError | null,
  words: { readonly errorClass: string; readonly errorMessage: string },
) => ({
  errorClass: error?.errorClass || words.errorClass,
  errorMessage: error?.errorMessage || words.errorMessage,
  errorStack: error?.errorStack || null,
})

/** Causes of death in one queue, shared by items with nothing of their own to say. `engine` is null in a plain queue. */
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

interface ItemDeath extends Death {
  readonly item: ItemFacts
  readonly itemId: string
}

const NAMELESS: MessageNames = { instanceId: null, correlationId: null }
const NO_NAMES: ReadonlyMap<number, MessageNames> = new Map()

/** Deaths in one place, before their letters have one. */
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
      position: null,
    }
    // Plain items have no names of their own, so deaths of one cause share what is written.
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

/** Where dying items are, whether all are leased, and whether they were read. */
interface Place extends Origin {
  readonly partition: number
  readonly isUnread: boolean
}

/** The loss of a place whose items a statement took. Unread items must be like most: delivered, without a case. */
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
    // An import may give a deadline to an item that is not leased.
    ...(leased && { deadline: instants('deadline') }),
  }
}

const goneWith = ({ created_at, lease_deadline, case_id, attempts }: TakenItem): Gone => ({
  ...{ created_s: 0, created_us: created_at, deadline_s: 0, deadline_us: lease_deadline ?? 0 },
  unlike: case_id === null && Number(attempts) > 0 ? 0 : 1,
})

interface TakingItems extends Taking<ItemDeath> {
  /** Items that reopened their letters. */
  readonly ended: ItemFacts[]
  /** Sums over the others, on SQLite. */
  readonly gone: Gone[]
}

/** How items leave their place; one that reopens its letter must be as it was read. */
const takingItems = ({ tx, now }: Cycle, from: Place, to: InDeadQueue | null): TakingItems => ({
  ended: [],
  gone: [],
  async end(deaths, letters) {
    // A letter stays resolved while its item is out. A pending one was reported anew, and its item has lost its case since.
    const out = deaths.filter(
      ({ caseId }) => caseId !== null && letters.get(caseId)?.status !== STATUS.Pending,
    )
    insistOn(deaths.length, out.length)
    const items = deaths.map(({ item }) => item)
    await removeReopened(tx, from, items)
    this.ended.push(...items)
  },
  all(deaths, notes) {
    const [serials, given] = givenByKey(
      ['id', 'note', 'item_id', 'serial', 'source_id'],
      deaths.map(({ item, itemId, sourceId, position }, i) => ({
        id: item.serial,
        note: notes[i] ?? 0,
        item_id: itemId,
        serial: position?.serial,
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
    const given = deaths.map(({ item, itemId, position }) => [item.serial, itemId, position?.serial ?? null])
    const [laidAt, leased] = [to === null ? null : now, from.leased ? 1 : 0]
    const serials = deaths.map(({ item }) => item.serial)
    return {
      statement: fileItems,
      values: [
        ...[first, laidAt, to?.part ?? null, from.partition, to?.deadQueue ?? null],
        ...[JSON.stringify(given), from.part, from.shelf, leased],
      ],
      remove: async () => {
        this.gone.push(...(await tx.rows<Gone>(sumItems, from.part, from.shelf, serials, leased)))
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
