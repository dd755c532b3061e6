/** What happens in a day at two offices. Refusals are part of it: a redrive may be over, a queue gone, a letter in somebody's hands. */
import type { LetterFilter } from '../../src/letters/lists/filter.ts'
import type { Office } from '../../src/office.ts'
import { isSending, type RedriveAction, type RedriveDetail, type Terms } from '../../src/redrive/redrive.ts'
import { type Step, unlessRefused } from '../world/model.ts'
import { workOff } from '../world/redrive-office.ts'
import { reportOf } from '../world/report.ts'
import type { TwoOffices } from './two-offices.ts'

export const ACTOR = 'nell'
export const QUEUES = ['orders', 'mails'] as const

/** Which letters a plan is about. */
export type Target = 'all' | 'keyed' | 'plain' | (typeof QUEUES)[number]

const SETTINGS = { leaseTimeout: '100h', expireTimeout: '240h' }

const FILTERS: Readonly<Record<Target, LetterFilter>> = {
  all: {},
  keyed: { engine: 'hmac' },
  plain: { engine: 'queues' },
  orders: { originalQueue: 'orders' },
  mails: { originalQueue: 'mails' },
}

/** Where letters are moved to. */
const ASIDE = 'aside'

export class Day {
  readonly offices: TwoOffices
  readonly #redrives: RedriveDetail['id'][] = []
  #reports = 0

  constructor(offices: TwoOffices) {
    this.offices = offices
  }

  async begin(): Promise<void> {
    const { queues } = this.offices.at(0)
    await queues.create({ ...SETTINGS, queueName: 'dead', requestedPartitions: 1 })
    await queues.create({ ...SETTINGS, queueName: ASIDE, requestedPartitions: 1, deadQueue: 'dead' })
    for (const queueName of QUEUES) await this.create(queueName)
  }

  async create(queueName: string): Promise<void> {
    const requestedPartitions = queueName === 'mails' ? 2 : 1
    const settings = { ...SETTINGS, queueName, requestedPartitions, deadQueue: 'dead' }
    await this.offices.at(0).queues.create(settings)
  }

  /** Takes a step; what is due afterwards is done when this returns. */
  async take(step: Step<Day>): Promise<void> {
    await unlessRefused(step.perform(this))
    await this.offices.settle()
  }

  async die(queueName: string, letters: number): Promise<void> {
    const { queues } = this.offices.at(0)
    const items = Array.from({ length: letters }, () => ({ payload: `plain-${++this.#reports}` }))
    await queues.produce({ queueName, items, requestTimeout: '1m' })
    await this.offices.advance(1n)
    await this.work(queueName, 'all')
  }

  async report(originalQueue: string, keys: readonly number[]): Promise<void> {
    for (const key of keys) {
      await this.offices.advance(1n)
      const { letters, clock } = this.offices.at(0)
      const changes = { originalQueue, instanceId: `key-${key}` }
      await letters.capture(reportOf(++this.#reports, clock.now(), changes))
    }
  }

  async plan(given: {
    readonly seat: number
    readonly target: Target
    readonly action: RedriveAction
    readonly terms: Terms
    readonly starts: boolean
  }): Promise<void> {
    const { action, terms } = given
    const { redrives } = this.offices.at(given.seat)
    const { id } = await redrives.plan({
      selection: { by: 'filter', filter: FILTERS[given.target] },
      action,
      queue: action === 'move' ? ASIDE : null,
      recipe: null,
      terms: isSending(action) ? terms : { ...terms, canary: null, stopRule: null },
      reason: action === 'discard' ? 'not needed' : null,
      actor: ACTOR,
    })
    this.#redrives.push(id)
    if (given.starts) await redrives.start(id, ACTOR)
  }

  /** Does something to the `nth` redrive, if there is one. */
  async redrive(
    seat: number,
    nth: number,
    act: (redrives: Office['redrives'], id: RedriveDetail['id']) => Promise<unknown>,
  ): Promise<void> {
    const id = this.#redrives[nth % Math.max(1, this.#redrives.length)]
    if (id !== undefined) await act(this.offices.at(seat).redrives, id)
  }

  /** Somebody acts on a single letter. */
  async byHand(does: 'retry' | 'discard' | 'restore', nth: number): Promise<void> {
    const { letters } = this.offices.at(0)
    const status = does === 'restore' ? 'Resolved' : 'Pending'
    const { items } = await letters.list({ status }, { limit: 30 })
    const chosen = items[nth % Math.max(1, items.length)]
    if (chosen === undefined) return
    if (does === 'retry') await letters.retry(chosen, { edit: null, notes: null, actor: ACTOR })
    else
      await letters.change(chosen, {
        status: does === 'discard' ? 'Resolved' : 'Pending',
        notes: 'by hand',
        actor: ACTOR,
      })
  }

  /** Takes what lies in a queue, and completes or kills it. */
  async work(queueName: string, dying: 'none' | 'some' | 'all'): Promise<void> {
    const isDying = (nth: number) => dying === 'all' || (dying === 'some' && nth % 3 === 0)
    await workOff(this.offices.at(0).queues, queueName, (_, nth) => !isDying(nth))
  }

  /**
   * Until every redrive has come to its end: whoever is paused goes on, and everything that was sent succeeds. A canary whose letters
   * were taken back, or went with their queue, hears of them never: it is cancelled.
   */
  async end(): Promise<void> {
    const { offices } = this
    await offices.find()
    await this.take({ perform: (day) => day.create('mails') })
    for (let round = 0; round < 200; round++) {
      const open = await offices.at(0).redrives.active()
      if (open.length === 0) return
      const { redrives } = offices.at(round)
      for (const { id, state, terms, resumesAs } of open) {
        if (terms.rate !== null && terms.rate < 100) await unlessRefused(redrives.setRate(id, 1_000, ACTOR))
        if (state !== 'paused') continue
        const isDeaf = round > PATIENCE && resumesAs === 'canary'
        await unlessRefused(isDeaf ? redrives.cancel(id, ACTOR, null) : redrives.resume(id, ACTOR))
      }
      for (const queue of [...QUEUES, ASIDE]) await this.work(queue, 'none')
      await offices.advance(1_100_000n)
    }
    const stuck = await offices.at(0).redrives.active()
    const told = stuck.map(({ id, state, note, counts }) => ({ id, state, note, counts }))
    throw new Error(`redrives do not end: ${JSON.stringify(told)}`)
  }
}

/** Rounds after which nothing more will be heard of. */
const PATIENCE = 40
