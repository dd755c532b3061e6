/** Does what a step says. Refusals are part of it: a redrive may be over, a queue gone, a letter in somebody's hands. */
import { BartlebyError } from '../../src/core/errors.ts'
import type { LetterStatus } from '../../src/letters/letter.ts'
import type { LetterFilter } from '../../src/letters/lists/filter.ts'
import type { RedriveDetail } from '../../src/redrive/redrive.ts'
import { QUEUES, type Step, type Target } from './steps.ts'
import type { TwoOffices } from './two-offices.ts'

const ACTOR = 'nell'
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
  readonly #offices: TwoOffices
  readonly #redrives: RedriveDetail['id'][] = []
  #reports = 0

  constructor(offices: TwoOffices) {
    this.#offices = offices
  }

  async begin(): Promise<void> {
    const { queues } = this.#offices.at(0)
    await queues.create({ ...SETTINGS, queueName: 'dead', requestedPartitions: 1 })
    await queues.create({ ...SETTINGS, queueName: ASIDE, requestedPartitions: 1, deadQueue: 'dead' })
    for (const queueName of QUEUES) await this.#create(queueName)
  }

  async #create(queueName: string): Promise<void> {
    const requestedPartitions = queueName === 'mails' ? 2 : 1
    const settings = { ...SETTINGS, queueName, requestedPartitions, deadQueue: 'dead' }
    await this.#offices.at(0).queues.create(settings)
  }

  /** Does it; what is due afterwards is done when this returns. */
  async perform(step: Step): Promise<void> {
    try {
      await this.#do(step)
    } catch (error) {
      if (!(error instanceof BartlebyError) || error.cause !== undefined) throw error
    }
    await this.#offices.settle()
  }

  async #do(step: Step): Promise<void> {
    const offices = this.#offices
    switch (step.does) {
      case 'die':
        return this.#die(step.queue, step.letters)
      case 'report':
        for (const key of step.keys) await this.#report(step.queue, key)
        return
      case 'plan':
        return this.#plan(step)
      case 'start':
      case 'pause':
      case 'resume':
      case 'cancel':
      case 'rate':
        return this.#command(step)
      case 'advance':
        return offices.advance(BigInt(step.ms) * 1_000n)
      case 'work':
        await this.work(step.queue, step.dying)
        return
      case 'retry':
      case 'discard':
      case 'restore':
        return this.#byHand(step)
      case 'delete':
        return offices.at(0).queues.delete({ queueName: 'mails', force: true })
      case 'create':
        return this.#create('mails')
      case 'lose':
        return offices.lose(step.seat)
      case 'replace':
        return offices.replace(step.seat)
      case 'find':
        return offices.find()
    }
  }

  async #die(queueName: string, letters: number): Promise<void> {
    const { queues } = this.#offices.at(0)
    const items = Array.from({ length: letters }, () => ({ payload: `plain-${++this.#reports}` }))
    await queues.produce({ queueName, items, requestTimeout: '1m' })
    await this.#offices.advance(1n)
    await this.work(queueName, 'all')
  }

  async #report(originalQueue: string, key: number): Promise<void> {
    const number = ++this.#reports
    await this.#offices.advance(1n)
    const { letters, clock } = this.#offices.at(0)
    await letters.capture({
      ...{ source: 'http', engine: 'hmac', instanceId: `key-${key}`, sourceId: `source-${number}` },
      ...{ correlationId: `correlation-${number}`, originalQueue, encoding: '', kind: '', reference: '' },
      ...{ headers: null, payload: Buffer.from(`{"number":${number}}`), dequeueCount: 1 },
      ...{ firstFailureAt: clock.now(), lastFailureAt: clock.now() },
      ...{ errorClass: 'TypeError', errorMessage: 'the key is gone', errorStack: null, failedBy: null },
      actor: 'tester',
    })
  }

  async #plan({ seat, target, action, terms, starts }: Extract<Step, { does: 'plan' }>): Promise<void> {
    const { redrives } = this.#offices.at(seat)
    const { id } = await redrives.plan({
      selection: { by: 'filter', filter: FILTERS[target] },
      action,
      queue: action === 'move' ? ASIDE : null,
      recipe: null,
      terms,
      reason: action === 'discard' ? 'not needed' : null,
      actor: ACTOR,
    })
    this.#redrives.push(id)
    if (starts) await redrives.start(id, ACTOR)
  }

  async #command(
    step: Extract<Step, { does: 'start' | 'pause' | 'resume' | 'cancel' | 'rate' }>,
  ): Promise<void> {
    const { redrives } = this.#offices.at(step.seat)
    const id = this.#redrives[step.redrive % Math.max(1, this.#redrives.length)]
    if (id === undefined) return
    switch (step.does) {
      case 'start':
        await redrives.start(id, ACTOR)
        return
      case 'pause':
        await redrives.pause(id, ACTOR, null)
        return
      case 'resume':
        await redrives.resume(id, ACTOR)
        return
      case 'cancel':
        await redrives.cancel(id, ACTOR, null)
        return
      case 'rate':
        await redrives.setRate(id, step.rate, ACTOR)
    }
  }

  async #byHand({ does, letter }: Extract<Step, { does: 'retry' | 'discard' | 'restore' }>): Promise<void> {
    const { letters } = this.#offices.at(0)
    const { items } = await letters.list(
      { status: does === 'restore' ? 'Resolved' : 'Pending' },
      { limit: 30 },
    )
    const chosen = items[letter % Math.max(1, items.length)]
    if (chosen === undefined) return
    if (does === 'retry') {
      await letters.retry(chosen, { edit: null, notes: null, actor: ACTOR })
      return
    }
    const status: LetterStatus = does === 'discard' ? 'Resolved' : 'Pending'
    await letters.change(chosen, { status, notes: 'by hand', actor: ACTOR })
  }

  /** Takes what lies in a queue, and completes or kills it. */
  async work(queueName: string, dying: 'none' | 'some' | 'all'): Promise<void> {
    const { queues } = this.#offices.at(0)
    for (;;) {
      const { partitions } = await queues.stats(queueName)
      if (partitions.every(({ total, totalLeased }) => total === totalLeased)) return
      const lease = { queueName, clientId: 'worker', batchSize: 100, requestTimeout: '1s' }
      const { partition, items } = await queues.lease(lease)
      const isDying = (n: number) => dying === 'all' || (dying === 'some' && n % 3 === 0)
      const good = items.filter((_, n) => !isDying(n)).map(({ id }) => id)
      const bad = items.filter((_, n) => isDying(n)).map(({ id }) => ({ id, dead: true }))
      if (good.length > 0) await queues.complete({ queueName, partition, ids: good })
      if (bad.length > 0) await queues.retry({ queueName, partition, items: bad })
    }
  }

  /**
   * Until every redrive has come to its end: whoever is paused goes on, and everything that was sent succeeds. A canary whose letters
   * were taken back, or went with their queue, hears of them never: it is cancelled.
   */
  async end(): Promise<void> {
    const offices = this.#offices
    await offices.find()
    await this.perform({ does: 'create' })
    for (let round = 0; round < 200; round++) {
      const open = await offices.at(0).redrives.active()
      if (open.length === 0) return
      const { redrives } = offices.at(round)
      for (const { id, state, terms, resumesAs } of open) {
        if (terms.rate !== null && terms.rate < 100) await quietly(redrives.setRate(id, 1_000, ACTOR))
        if (state !== 'paused') continue
        const isDeaf = round > PATIENCE && resumesAs === 'canary'
        await quietly(isDeaf ? redrives.cancel(id, ACTOR, null) : redrives.resume(id, ACTOR))
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

/** It may have come to its end meanwhile. */
async function quietly(act: Promise<unknown>): Promise<void> {
  await act.catch((error: unknown) => {
    if (!(error instanceof BartlebyError)) throw error
  })
}
