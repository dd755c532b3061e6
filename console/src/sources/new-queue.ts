/** A queue that is to be created: what the server is sent, what the command line is, and which field a refusal is about. */

export interface NewQueue {
  readonly name: string
  readonly leaseTimeout: string
  readonly expireTimeout: string
  readonly maxAttempts: number
  readonly partitions: number
  readonly deadQueue: string
  /** Counts only without a dead queue. */
  readonly onDeath: 'letter' | 'delete'
  readonly reference: string
}

/** The defaults of the command line. */
export const FRESH: NewQueue = {
  name: '',
  leaseTimeout: '1m',
  expireTimeout: '24h',
  maxAttempts: 0,
  partitions: 1,
  deadQueue: '',
  onDeath: 'letter',
  reference: '',
}

/** The body of `POST /v1/queues.create`. */
export const requestOf = (queue: NewQueue) => ({
  queue_name: queue.name,
  lease_timeout: queue.leaseTimeout.trim(),
  expire_timeout: queue.expireTimeout.trim(),
  max_attempts: queue.maxAttempts,
  requested_partitions: queue.partitions,
  dead_queue: queue.deadQueue,
  on_death: queue.onDeath,
  reference: queue.reference,
})

/** The same for its dead queue, where that is missing: the same times, and else as usual. */
export const deadQueueRequestOf = (queue: NewQueue) =>
  requestOf({
    ...FRESH,
    name: queue.deadQueue,
    leaseTimeout: queue.leaseTimeout,
    expireTimeout: queue.expireTimeout,
  })

/** How refusals of each field begin; that is part of the contract of the queue API. */
const BEGINNINGS: readonly (readonly [keyof NewQueue, RegExp])[] = [
  ['name', /^(queue name|invalid queue)\b/],
  ['leaseTimeout', /^lease timeout\b/],
  ['expireTimeout', /^expire timeout\b/],
  ['maxAttempts', /^max attempts\b/],
  ['partitions', /^partitions\b/],
  ['deadQueue', /^dead[ _]queue\b/],
  ['onDeath', /^on_death\b/],
  ['reference', /^reference field\b/],
]

export interface Refusal {
  /** null: it is about none of them. */
  readonly field: keyof NewQueue | null
  readonly reason: string
}

/** Which field a refusal is about. */
export function fieldOf(reason: string): Refusal {
  const [field] = BEGINNINGS.find(([, beginning]) => beginning.test(reason)) ?? [null]
  return { field, reason }
}

/** The command that does the same; what is as usual is left out. */
export function createCommand(queue: NewQueue): string {
  const flags = (
    [
      ['--lease-timeout', 'leaseTimeout'],
      ['--expire-timeout', 'expireTimeout'],
      ['--max-attempts', 'maxAttempts'],
      ['--dead-queue', 'deadQueue'],
      ['--on-death', 'onDeath'],
      ['--partitions', 'partitions'],
      ['--reference', 'reference'],
    ] as const
  ).flatMap(([flag, field]) => (queue[field] === FRESH[field] ? [] : [flag, quoted(String(queue[field]))]))
  return ['bartleby queues create', quoted(queue.name === '' ? 'NAME' : queue.name), ...flags].join(' ')
}

/** As a shell takes it for one word. */
const quoted = (text: string): string =>
  /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
