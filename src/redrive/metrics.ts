/** Prometheus metrics of redrives: how many are under way, how much is left, what this server did. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { Step } from './driving/drive.ts'
import type { RedriveStanding } from './redrive.ts'
import { REDRIVE_ACTIONS, type RedriveState } from './shapes.ts'

const UNDER_WAY = ['canary', 'running', 'paused'] as const
const ENDS = ['done', 'stopped', 'cancelled'] as const

export class RedriveMetrics {
  readonly #redrives: Gauge<'state'>
  readonly #remaining: Gauge
  readonly #letters: Counter<'action' | 'outcome'>
  readonly #ended: Counter<'state'>
  readonly #resumed: Counter

  constructor(registry: Registry) {
    const registers = [registry]
    this.#redrives = new Gauge({
      name: 'bartleby_redrives',
      help: 'Redrives that were started and are not over, by state; the same on every server.',
      labelNames: ['state'],
      registers,
    })
    this.#remaining = new Gauge({
      name: 'bartleby_redrive_letters_remaining',
      help: 'Letters of these redrives that are still to go; the same on every server.',
      registers,
    })
    this.#letters = new Counter({
      name: 'bartleby_redrive_letters_total',
      help: 'Letters of redrives that this server has sent (or discarded, or restored), skipped or failed at, since it started.',
      labelNames: ['action', 'outcome'],
      registers,
    })
    this.#ended = new Counter({
      name: 'bartleby_redrives_ended_total',
      help: 'Redrives that ended on this server, by the state they ended in, since it started.',
      labelNames: ['state'],
      registers,
    })
    this.#resumed = new Counter({
      name: 'bartleby_redrives_resumed_total',
      help: 'Redrives that this server went on with after another, or before its restart, had begun them, since it started.',
      registers,
    })
    // Counters start at zero: one born with its first event shows no increase.
    for (const action of REDRIVE_ACTIONS) this.step({ action, sent: 0, skipped: 0, failed: 0 })
    for (const state of ENDS) this.#ended.inc({ state }, 0)
  }

  step({ action, sent, skipped, failed }: Step): void {
    this.#letters.inc({ action, outcome: 'sent' }, sent)
    this.#letters.inc({ action, outcome: 'skipped' }, skipped)
    this.#letters.inc({ action, outcome: 'failed' }, failed)
  }

  ended(state: RedriveState): void {
    this.#ended.inc({ state })
  }

  resumed(): void {
    this.#resumed.inc()
  }

  /** Shows what is under way. null is unknown and shows nothing, which says more than an old number. */
  show(active: readonly RedriveStanding[] | null): void {
    this.#redrives.reset()
    this.#remaining.remove()
    if (active === null) return
    for (const state of UNDER_WAY)
      this.#redrives.set({ state }, active.filter((redrive) => redrive.state === state).length)
    this.#remaining.set(active.reduce((sum, { counts }) => sum + counts.remaining, 0))
  }
}
