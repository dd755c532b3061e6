/** The life of each item, put together from a history: where it was produced, every delivery, what ended it. */
import { type Instant, instant } from '../../src/core/clock.ts'
import { type Call, type History, labelOf, type Produced } from './history.ts'

type CallOf<V extends Call['verb']> = Extract<Call, { readonly verb: V }>

export interface Delivery {
  readonly lease: CallOf<'lease'>
  readonly id: string
  readonly attempts: number
  readonly deadline: Instant
  /** The time from which the lease counts: leases run for a fixed time. */
  readonly at: Instant
  /**
   * The time it may have been when the item was taken. One server takes items at the time its leases count from;
   * with several, one may have looked at the clock before another gave the item back.
   */
  readonly takenBy: Instant
}

export interface Life {
  readonly label: string
  readonly birth: CallOf<'produce'>
  readonly born: Produced
  /** By attempts. */
  readonly deliveries: readonly Delivery[]
}

export interface Lives {
  readonly byLabel: ReadonlyMap<string, Life>
  /** What was delivered without having been produced. */
  readonly strangers: readonly string[]
  readonly completions: CallsById<'complete'>
  readonly retries: CallsById<'retry'>
  readonly extensions: CallsById<'extend'>
  readonly removals: CallsById<'delete'>
}

/** The granted calls of one verb that name an id. */
export class CallsById<V extends 'complete' | 'retry' | 'extend' | 'delete'> {
  readonly #byId = new Map<string, CallOf<V>[]>()

  constructor(calls: readonly Call[], verb: V) {
    for (const call of calls) {
      if (call.refused !== null || !('ids' in call) || !isCall(call, verb)) continue
      for (const id of call.ids) this.#byId.set(id, [...this.of(id), call])
    }
  }

  of(id: string): readonly CallOf<V>[] {
    return this.#byId.get(id) ?? []
  }
}

// The verb decides the shape of a call; the compiler does not narrow a union by a generic verb.
const isCall = <V extends Call['verb'], C extends Call>(call: C, verb: V): call is C & CallOf<V> =>
  call.verb === verb

export function livesOf({ calls, rules }: History): Lives {
  const deliveries = new Map<string, Delivery[]>()
  for (const lease of calls) {
    if (lease.verb !== 'lease') continue
    for (const item of lease.items) {
      const label = labelOf(item)
      const at = instant(item.leaseDeadline - rules.leaseUs)
      deliveries.set(label, [
        ...(deliveries.get(label) ?? []),
        {
          lease,
          id: item.id,
          attempts: item.attempts,
          deadline: item.leaseDeadline,
          at,
          takenBy: rules.servers > 1 ? lease.to : at,
        },
      ])
    }
  }
  const byLabel = new Map<string, Life>()
  for (const birth of calls) {
    if (birth.verb !== 'produce' || birth.refused !== null) continue
    for (const born of birth.items) {
      const mine = (deliveries.get(born.label) ?? []).sort((a, b) => a.attempts - b.attempts)
      byLabel.set(born.label, { label: born.label, birth, born, deliveries: mine })
    }
  }
  return {
    byLabel,
    strangers: [...deliveries.keys()].filter((label) => !byLabel.has(label)),
    completions: new CallsById(calls, 'complete'),
    retries: new CallsById(calls, 'retry'),
    extensions: new CallsById(calls, 'extend'),
    removals: new CallsById(calls, 'delete'),
  }
}

/**
 * The deadlines that the lease of a delivery may have had when something happened in the span `by`: an extension
 * that certainly came later replaces the ones before it.
 */
export function possibleDeadlines(
  { extensions }: Lives,
  delivery: Delivery,
  by: { readonly began: number; readonly ended: number },
): Instant[] {
  const granted = extensions.of(delivery.id).filter((call) => call.began < by.ended)
  const settings = [
    { began: delivery.lease.began, ended: delivery.lease.ended, deadline: delivery.deadline },
    ...granted.flatMap(({ began, ended, deadline }) => (deadline === null ? [] : { began, ended, deadline })),
  ]
  return settings
    .filter((one) => !settings.some((other) => one.ended < other.began && other.ended < by.began))
    .map(({ deadline }) => deadline)
}
