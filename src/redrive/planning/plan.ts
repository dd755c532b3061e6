/**
 * Makes a plan: checks every letter that was asked for and freezes the set of those that can be acted on, dealt into lanes. Nothing about
 * a letter changes.
 *
 *   freeze   on one snapshot, so that letters moving meanwhile are met once; written in portions
 *   repair   takes out letters that refuse the recipe
 *   order    takes out letters that would overtake an earlier one
 *
 * A plan is a run: it may outlive its request, and another server may take it up.
 */
import { setImmediate as othersTurn } from 'node:timers/promises'
import { type Clock, later } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Xid } from '../../core/xid.ts'
import { contentPortions, readContents } from '../../letters/contents.ts'
import { goesToQueues, kindOf } from '../../letters/kinds.ts'
import { type LetterId, STATUS } from '../../letters/letter.ts'
import { type Plannable, readPlannables } from '../../letters/lists/bulk-letters.ts'
import type { Sources } from '../../letters/source.ts'
import { inOffice } from '../../letters/work.ts'
import type { Database, Session, Snapshot, Transaction } from '../../store/database.ts'
import type { Course, Here } from '../../work/run.ts'
import { lockRun, noteProgress, type Run, removeRun } from '../../work/run-rows.ts'
import { decide } from '../commands.ts'
import { reasonOf } from '../driving/obstacles.ts'
import { isSending, PLAN_VALID_US, type PlanNumbers, type RedriveNumber } from '../redrive.ts'
import type { Recipe } from '../repair/recipe.ts'
import { RepairBudget } from '../repair/repair-bounds.ts'
import type { Repairer } from '../repair/repairer.ts'
import { insertLanes, LANE_START, type Lane, type LanePlace } from '../rows/lanes.ts'
import {
  type DealtLetter,
  insertLetters,
  type LaneLetter,
  lettersAhead,
  nextLetters,
  removeLetters,
} from '../rows/members.ts'
import { forgetRedrive, removeSomeLetters } from '../rows/removal.ts'
import { notePlan, openRedrives, readRedrive, type StoredRedrive } from '../rows/rows.ts'
import { type Way, Ways } from './destinations.ts'
import { blockedOf, type FirstsOfKeys, KeysOfPlan } from './order.ts'
import { isMoreThan, selectLetters } from './selecting.ts'

interface PlanParts extends Here {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly sources: Sources
  readonly repairer: Repairer
  /** Reports to whoever waits for the plan why there is none; false when nobody does. */
  refused(id: Xid, error: unknown): boolean
}

/** Lanes per destination whose letters have keys, or no order. */
const LANES_OF_KEYS = 4
/** Letters looked at together once the set is frozen. */
const LOOK = 1_000
/** Longest repair before checking that the plan is still wanted. */
const REPAIR_MS = 500
/** Letters without a key go in two lanes instead of one when the plan has more than this. */
const FEW = 10_000

/** Servers, or tries, before a plan is given up. */
const MOST_TRIES = 5

/** Cancelled, or another server's by now. */
class PlanLost extends Error {}

interface PlannedLane extends Lane {
  planned: number
  hasKeys: boolean
}

/** A plan being made on this server. One taken up from another starts anew, because its snapshot is gone. */
export class Planning implements Course {
  readonly #parts: PlanParts
  readonly #run: Run
  #read: StoredRedrive | null = null
  #ways: Ways | null = null
  readonly #lanes = new Map<string, PlannedLane>()
  readonly #lanesOf = new Map<Way, PlannedLane[]>()
  readonly #numbers = { inFlight: 0, noDestination: 0, orderBlocked: 0, duplicate: 0, invalid: 0 }
  /** Redrives that keep their letters. */
  #others: readonly RedriveNumber[] = []
  readonly #keys = new KeysOfPlan()
  /** Whether no letter outside the set comes before one in it. */
  #isInOrder = false
  #areMany = false
  #dealt = 0
  readonly #budget = new RepairBudget()

  constructor(parts: PlanParts, run: Run) {
    this.#parts = parts
    this.#run = run
  }

  /** A cancelled plan is noticed at its next write. */
  readonly round = async (): Promise<'over' | 'left'> => {
    const { id, resumed } = this.#run
    try {
      this.#read = await this.#parts.db.session('redrive.read', (session) => readRedrive(session, id))
      if (resumed > 0) await this.#clear()
      await this.#freeze()
      await this.#repair()
      await this.#keepOrder()
      await this.#complete()
      return 'over'
    } catch (error) {
      return this.#onTrouble(error)
    }
  }

  get #request(): StoredRedrive {
    if (this.#read === null) throw new PlanLost()
    return this.#read
  }

  /** Removes what another server found. */
  async #clear(): Promise<void> {
    const some = (tx: Transaction) => removeSomeLetters(tx, this.#request.number)
    while (await this.#write('redrive.clear', some)) await othersTurn()
  }

  /** Writes a part of the plan and its progress, while it is this server's. */
  #write<T>(verb: string, act: (tx: Transaction) => Promise<T>): Promise<T> {
    const { db, owner } = this.#parts
    const numbers = this.#found
    return db.transaction(verb, async (tx) => {
      const run = await lockRun(tx, this.#run.id)
      if (run?.owner !== owner) throw new PlanLost()
      await noteProgress(tx, run.id, owner, { done: numbers.matched, skipped: 0, failed: 0, rateNow: null })
      const { number, plannedAt, validUntil } = this.#request
      await notePlan(tx, number, { state: 'planning', numbers, plannedAt, validUntil })
      return act(tx)
    })
  }

  get #found(): PlanNumbers {
    const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
    const eligible = sum([...this.#lanes.values()].map(({ planned }) => planned))
    return { matched: eligible + sum(Object.values(this.#numbers)), eligible, ...this.#numbers }
  }

  /** A refused plan is given up; another failure may pass for whoever takes it up. */
  async #onTrouble(error: unknown): Promise<'over' | 'left'> {
    const { db, clock, log, owner, signal, refused } = this.#parts
    const { id, resumed } = this.#run
    if (error instanceof PlanLost) return 'over'
    if (refused(id, error)) {
      await forgetRedrive(db, this.#request).catch(() => {})
      return 'over'
    }
    if (signal.aborted) return 'left'
    log.warn({ err: error, redrive: id }, 'a redrive was not planned')
    if (!(error instanceof BartlebyError) && resumed < MOST_TRIES) return 'left'
    const note = error instanceof BartlebyError ? reasonOf(error) : `it could not be planned: ${error}`
    await inOffice(db, clock, 'redrive.decide', (work) => decide(work, id, owner, { state: 'stopped', note }))
    return 'over'
  }

  /** Reads the letters of one snapshot in portions and writes those that can be acted on. */
  async #freeze(): Promise<void> {
    const { db, sources, signal } = this.#parts
    const { number, selection, action } = this.#request
    this.#areMany = await isMoreThan(db, selection, action, FEW)
    // The next portion is read while this one is written.
    let written: Promise<unknown> = Promise.resolve()
    const look = async (session: Snapshot): Promise<void> => {
      this.#others = (await openRedrives(session)).map(({ number }) => number)
      const selected = selectLetters(session, sources, selection, action)
      for await (const { letters, duplicate, unknown } of selected) {
        signal.throwIfAborted()
        this.#numbers.duplicate += duplicate
        this.#numbers.invalid += unknown
        // A look at SQLite holds up the whole server.
        await othersTurn()
        if (letters.length === 0) continue
        const dealt = (await this.#eligible(session, letters)).map((each) => this.#deal(each))
        await othersTurn()
        await written
        written = this.#write('redrive.freeze', (tx) => insertLetters(tx, number, dealt))
        written.catch(() => {})
      }
      this.#isInOrder = await this.#keys.areWhole(session)
    }
    await db.snapshot('redrive.select', look, { apart: true, signal }).finally(() => written)
  }

  async #repair(): Promise<void> {
    const { recipe } = this.#request
    if (recipe === null) return
    for (const lane of this.#lanes.values()) {
      const taken = await this.#takeOut(lane, (letters) => this.#beyondRepair(recipe, lane, letters))
      this.#numbers.invalid += taken
      if (taken > 0) this.#isInOrder = false
    }
  }

  async #keepOrder(): Promise<void> {
    if (this.#isInOrder) return
    for (const lane of this.#lanes.values()) {
      if (!lane.hasKeys) continue
      const firsts: FirstsOfKeys = new Map()
      this.#numbers.orderBlocked += await this.#takeOut(lane, (letters) =>
        this.#parts.db.session('redrive.order', (session) => blockedOf(session, lane, letters, firsts)),
      )
    }
  }

  /** Takes the letters that `choose` finds out of a lane; gives how many. */
  async #takeOut(
    lane: PlannedLane,
    choose: (letters: readonly LaneLetter[]) => Promise<readonly LaneLetter[]>,
  ): Promise<number> {
    const { db, signal } = this.#parts
    const before = lane.planned
    for (let behind: LanePlace | undefined = LANE_START; behind !== undefined; ) {
      signal.throwIfAborted()
      const from: LanePlace = behind
      const letters = await db.session('redrive.next', (session) => nextLetters(session, lane, from, LOOK))
      const out = await choose(letters)
      await this.#write('redrive.takeOut', (tx) => removeLetters(tx, lane, out))
      lane.planned -= out.length
      behind = letters.at(-1)
      await othersTurn()
    }
    return before - lane.planned
  }

  /** From here on the plan can be started. */
  async #complete(): Promise<void> {
    const lanes = [...this.#lanes.values()].filter(({ planned }) => planned > 0)
    const numbers = this.#found
    await this.#write('redrive.complete', async (tx) => {
      await insertLanes(tx, lanes)
      const plannedAt = this.#parts.clock.now()
      const validUntil = later(plannedAt, PLAN_VALID_US)
      await notePlan(tx, this.#request.number, { state: 'planned', numbers, plannedAt, validUntil })
      await removeRun(tx, this.#run.id)
    })
  }

  /** Letters that can be acted on; the others are counted. */
  async #eligible(session: Session, letters: readonly LetterId[]): Promise<Eligible[]> {
    const found = await readPlannables(session, letters)
    this.#numbers.invalid += letters.length - found.length
    const taken = await lettersAhead(session, letters, this.#others)
    this.#ways ??= new Ways(this.#request)
    const ways = this.#ways
    await ways.learn(
      session,
      found.map(({ drawer }) => drawer),
    )
    const eligible: Eligible[] = []
    for (const letter of found) {
      if (taken.has(letter.id) || isBusy(this.#request, letter)) this.#numbers.inFlight++
      else if (!fits(this.#request, letter)) this.#numbers.invalid++
      else {
        const way = ways.of(letter.drawer)
        if (way.exists) eligible.push({ letter, way })
        else this.#numbers.noDestination++
      }
    }
    return eligible
  }

  /** Letters that refuse the recipe. Refuses a recipe that costs more than a plan may. */
  async #beyondRepair(
    recipe: Recipe,
    { source }: Lane,
    letters: readonly LaneLetter[],
  ): Promise<readonly LaneLetter[]> {
    const { db, repairer, signal } = this.#parts
    const ids = letters.map(({ letter }) => letter)
    const fit = new Set<LetterId>()
    for (const portion of await db.session('redrive.measure', (session) => contentPortions(session, ids))) {
      const contents = await db.session('redrive.contents', (session) => readContents(session, portion))
      const left = [...contents.values()].map((content) => ({ ...content, source }))
      while (left.length > 0) {
        signal.throwIfAborted()
        const trials = await repairer.repair(recipe, left, { forMs: REPAIR_MS, keepsPayloads: false })
        for (const [i, { id }] of left.splice(0, trials.length).entries()) if (trials[i]?.ok) fit.add(id)
        this.#budget.spend(trials)
      }
    }
    return letters.filter(({ letter }) => !fit.has(letter))
  }

  #deal({ letter, way }: Eligible): DealtLetter {
    const lane = this.#laneOf(way, this.#shareOf(letter, way))
    lane.planned++
    const { id, key, capturedAt, version } = letter
    const { action, terms } = this.#request
    if (key !== null && isSending(action) && terms.order === 'key' && goesToQueues(way.source)) {
      lane.hasKeys = true
      this.#keys.add(way.engine, key, letter)
    }
    return { lane: lane.lane, letter: id, capturedAt, version }
  }

  /** The share of a letter among the lanes of its destination. Lines of an outbox are of one tenant, which is the key of its letters. */
  #shareOf({ key, id }: Plannable, { source }: Way): number {
    const { action, terms } = this.#request
    if (!isSending(action) || kindOf(source).ordersByKey !== true) return 0
    switch (terms.order) {
      case 'capture':
        return 0
      case 'key':
        if (key !== null) return hashOf(key) % LANES_OF_KEYS
        // Alternating: lanes are walked side by side, so capture order is nearly kept.
        return this.#areMany && goesToQueues(source) ? this.#dealt++ % 2 : 0
      case 'none':
        return Number(id % BigInt(LANES_OF_KEYS))
    }
  }

  #laneOf(way: Way, share: number): PlannedLane {
    const lanes = this.#lanesOf.get(way) ?? []
    const lane = lanes[share] ?? this.#openLane(way, share)
    lanes[share] = lane
    this.#lanesOf.set(way, lanes)
    return lane
  }

  /** One for all drawers with the same way. */
  #openLane({ source, engine, destination }: Way, share: number): PlannedLane {
    const name = JSON.stringify([source, engine, destination, share])
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    const lane: PlannedLane = {
      redrive: this.#request.number,
      lane: this.#lanes.size,
      source,
      engine,
      destination,
      planned: 0,
      hasKeys: false,
    }
    this.#lanes.set(name, lane)
    return lane
  }
}

interface Eligible {
  readonly letter: Plannable
  readonly way: Way
}

/** Whether somebody works on it: a lessee in its dead queue, or whoever it was sent back to. */
const isBusy = ({ action }: StoredRedrive, { isLeased, isUnconfirmed }: Plannable): boolean =>
  isLeased || (action !== 'restore' && isUnconfirmed)

const fits = ({ action }: StoredRedrive, { status }: Plannable): boolean =>
  action === 'restore' ? status === STATUS.Resolved || status === STATUS.Expired : status === STATUS.Pending

/** FNV-1a: the same for the same text, everywhere. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash
}
