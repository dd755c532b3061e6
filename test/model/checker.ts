/**
 * Checks what clients saw of one queue with one partition against what a queue promises. Knows nothing of how
 * the queue works: only the contract, the order of calls and the office's time. Returns what is wrong, in words.
 */
import type { Instant } from '../../src/core/clock.ts'
import type { StoredItem } from '../../src/queues/queue.ts'
import { type Call, type Ending, type History, labelOf, type Rules } from './history.ts'
import { type Delivery, type Life, type Lives, livesOf, possibleDeadlines } from './lives.ts'

const GRACE_AT_LEAST_US = 5_000n
const GRACE_AT_MOST_US = 10_000n
const NEAR_NOW_US = 100_000n

/** After everything else. */
const AT_THE_END = { began: Number.MAX_SAFE_INTEGER, ended: Number.MAX_SAFE_INTEGER }

const LEGAL_REFUSALS: Readonly<Record<Call['verb'], readonly string[]>> = {
  produce: [],
  lease: ['lease_timed_out', 'ClientGone: '],
  complete: ['item_unknown', 'complete_not_leased'],
  retry: ['item_unknown', 'retry_not_leased'],
  extend: ['item_unknown', 'extend_not_leased'],
  delete: [],
}

/** Everything that is wrong with a history; nothing when it is one that a correct queue can have. */
export function violations(history: History): string[] {
  const lives = livesOf(history)
  return [
    ...lives.strangers.map((label) => `${label} was delivered and never produced`),
    ...history.calls.flatMap((call) => [...checkCall(call, lives, history.rules)]),
    ...[...lives.byLabel.values()].flatMap((life) => [
      ...checkDeliveries(life, lives, history.rules),
      ...checkSettlements(life, lives),
      ...checkEnding(life, lives, history),
    ]),
    ...checkOrder(history, lives),
    ...checkBooks(history.ending),
  ]
}

function* checkCall(call: Call, lives: Lives, rules: Rules): Iterable<string> {
  if (call.refused !== null && !LEGAL_REFUSALS[call.verb].includes(call.refused)) {
    yield `${call.verb} failed: ${call.refused}`
  }
  if (call.verb === 'lease') {
    const ids = call.items.map(({ id }) => id)
    if (ids.length > call.batchSize) yield `a lease of ${call.batchSize} got ${ids.length} items`
    if (!ascends(ids)) yield `a lease got items out of order: ${call.items.map(labelOf).join(', ')}`
    for (const item of call.items) {
      const at = item.leaseDeadline - rules.leaseUs
      if (at < call.from || at > call.to) yield `${labelOf(item)} has a lease that starts outside of its call`
    }
  }
  const settles = call.verb === 'complete' || call.verb === 'retry' || call.verb === 'extend'
  if (settles && call.refused !== null && !call.ids.some((id) => mayHaveEnded(id, call, lives))) {
    yield `${call.verb} of ${call.ids.join(', ')} was refused although all are leased`
  }
}

/** Whether the lease of `id` may have been over, settled or deleted when `call` was applied. */
function mayHaveEnded(id: string, call: Call, lives: Lives): boolean {
  const settled = [...lives.completions.of(id), ...lives.retries.of(id), ...lives.removals.of(id)]
  if (settled.some((other) => other.began < call.ended)) return true
  const delivery = [...lives.byLabel.values()].flatMap((life) => life.deliveries).find((one) => one.id === id)
  return delivery === undefined || mayBeOver(lives, delivery, call, call.to)
}

const mayBeOver = (
  lives: Lives,
  delivery: Delivery,
  by: { readonly began: number; readonly ended: number },
  at: Instant,
): boolean => possibleDeadlines(lives, delivery, by).some((deadline) => at > deadline + GRACE_AT_LEAST_US)

/** Attempts grow by one; never two holders; not before its time; not past its expiry. */
function* checkDeliveries(life: Life, lives: Lives, rules: Rules): Iterable<string> {
  const { label, birth, born, deliveries } = life
  const expiresAt = birth.to + rules.expireUs
  for (const [i, delivery] of deliveries.entries()) {
    if (delivery.attempts !== i + 1) {
      yield `${label} was delivered with attempts ${deliveries.map(({ attempts }) => attempts).join(', ')}`
      return
    }
    if (delivery.lease.ended < birth.began) yield `${label} was delivered before it was produced`
    if (delivery.at > expiresAt) yield `${label} was delivered past its expiry`
    const before = deliveries[i - 1]
    if (before !== undefined) yield* checkHandover(label, before, delivery, lives, rules)
  }
  const [first] = deliveries
  if (first === undefined) return
  if (born.enqueueAt === null && first.id !== born.id) yield `${label} was first delivered under another id`
  if (born.enqueueAt !== null) {
    if (first.takenBy <= born.enqueueAt) yield `${label} was delivered before it came due`
    if (first.id <= born.id) yield `${label} came due and did not get a new id at the tail`
  }
}

/** One delivery of an item must be over before the next: given back, or its lease has ended. */
function* checkHandover(
  label: string,
  before: Delivery,
  next: Delivery,
  lives: Lives,
  rules: Rules,
): Iterable<string> {
  if (next.id <= before.id) yield `${label} was delivered again without a new id at the tail`
  if (next.takenBy < before.at || next.lease.ended < before.lease.began)
    yield `${label} was delivered backwards`
  if (rules.maxAttempts !== 0 && before.attempts >= rules.maxAttempts) {
    yield `${label} was delivered ${next.attempts} times, ${rules.maxAttempts} are allowed`
  }
  const givenBack = lives.retries.of(before.id).some(({ dead, retryAt, from, to, began }) => {
    const waits = retryAt !== null && retryAt >= to + NEAR_NOW_US
    return !dead && began < next.lease.ended && from <= next.takenBy && (!waits || next.takenBy > retryAt)
  })
  if (!givenBack && !mayBeOver(lives, before, next.lease, next.takenBy)) {
    yield `${label} was delivered while another lease of it was valid`
  }
}

/** A delivery is settled once, and not by someone whose lease was already given to another. */
function* checkSettlements(life: Life, lives: Lives): Iterable<string> {
  const { label, deliveries } = life
  for (const [i, { id }] of deliveries.entries()) {
    const next = deliveries[i + 1]
    const settlements = [...lives.completions.of(id), ...lives.retries.of(id)]
    if (settlements.length > 1) yield `${label} was settled ${settlements.length} times under one id`
    for (const call of [...settlements, ...lives.extensions.of(id)]) {
      if (next !== undefined && next.lease.ended < call.began) {
        yield `${label}: ${call.verb} was granted after the item went to another holder`
      }
    }
    for (const call of settlements) {
      const ends = call.verb === 'complete' || call.dead
      if (ends && next !== undefined) yield `${label} was delivered after ${call.verb} had ended it`
    }
  }
}

/** Every item is in exactly one place at the end, as its life says. */
function* checkEnding(life: Life, lives: Lives, { ending, rules }: History): Iterable<string> {
  const { label, deliveries } = life
  const mine = (items: readonly StoredItem[]) => items.filter((item) => labelOf(item) === label)
  const queued = mine(ending.queued)
  const scheduled = mine(ending.scheduled)
  const dead = mine(ending.dead)
  const completed = deliveries.filter(({ id }) => lives.completions.of(id).length > 0)
  const places = [
    ...completed.map(() => 'completed'),
    ...queued.map(() => 'queued'),
    ...scheduled.map(() => 'scheduled'),
    ...dead.map(() => 'dead'),
  ]
  if (places.length > 1) yield `${label} ended in several places: ${places.join(', ')}`
  if (places.length === 0 && !mayBeDeleted(life, lives, rules, ending)) yield `${label} is lost`
  for (const item of queued) yield* checkQueued(item, life, lives, rules, ending)
  for (const item of scheduled) yield* checkScheduled(item, life, lives, ending)
  for (const item of dead) yield* checkDead(item, life, lives, rules)
}

function mayBeDeleted(life: Life, lives: Lives, rules: Rules, ending: Ending): boolean {
  const ids = [life.born.id, ...life.deliveries.map(({ id }) => id)]
  if (ids.some((id) => lives.removals.of(id).length > 0)) return true
  if (rules.hasDeadQueue) return false
  const last = life.deliveries.at(-1)
  if (ending.now > life.birth.from + rules.expireUs) return true
  if (last === undefined) return false
  const retries = lives.retries.of(last.id)
  if (retries.some(({ dead }) => dead)) return true
  const lastAttempt = rules.maxAttempts !== 0 && last.attempts >= rules.maxAttempts
  return lastAttempt && (retries.length > 0 || mayBeOver(lives, last, AT_THE_END, ending.now))
}

function* checkQueued(
  item: StoredItem,
  { label, birth, deliveries }: Life,
  lives: Lives,
  rules: Rules,
  { now }: Ending,
): Iterable<string> {
  const last = deliveries.at(-1)
  if (item.attempts !== deliveries.length)
    yield `${label} shows ${item.attempts} attempts of ${deliveries.length}`
  if (item.createdAt < birth.from || item.createdAt > birth.to) yield `${label} has a wrong created_at`
  if (item.expireDeadline !== item.createdAt + rules.expireUs) yield `${label} has a wrong expire_deadline`
  if (item.isLeased) {
    const deadlines = last === undefined ? [] : possibleDeadlines(lives, last, AT_THE_END)
    if (item.id !== last?.id) yield `${label} is leased under an id that nobody was given`
    if (item.leaseDeadline === null || !deadlines.includes(item.leaseDeadline))
      yield `${label} has a wrong deadline`
    else if (now > item.leaseDeadline + GRACE_AT_MOST_US) yield `${label} is still leased after its deadline`
    if (last !== undefined && lives.retries.of(last.id).length > 0)
      yield `${label} is leased although it was retried`
    return
  }
  if (item.leaseDeadline !== null) yield `${label} has a deadline without a lease`
  if (item.expireDeadline !== null && now > item.expireDeadline) yield `${label} is queued past its expiry`
  if (last === undefined) return
  if (item.id <= last.id) yield `${label} was requeued without a new id`
  if (lives.retries.of(last.id).length === 0 && !mayBeOver(lives, last, AT_THE_END, now)) {
    yield `${label} lost its lease before the deadline`
  }
}

function* checkScheduled(item: StoredItem, life: Life, lives: Lives, { now }: Ending): Iterable<string> {
  const { label, born, deliveries } = life
  const last = deliveries.at(-1)
  if (item.attempts !== deliveries.length)
    yield `${label} shows ${item.attempts} attempts of ${deliveries.length}`
  if (item.enqueueAt === null || now > item.enqueueAt) yield `${label} is scheduled although it is due`
  if (item.id !== (last?.id ?? born.id)) yield `${label} got a new id while it waits`
  const times =
    last === undefined ? [born.enqueueAt] : lives.retries.of(last.id).map(({ retryAt }) => retryAt)
  if (!times.includes(item.enqueueAt)) yield `${label} is scheduled for a time that nobody asked for`
}

function* checkDead(item: StoredItem, life: Life, lives: Lives, rules: Rules): Iterable<string> {
  const { label, birth, deliveries } = life
  const { death } = item
  if (death === null) {
    yield `${label} lies in the dead queue without a record of its death`
    return
  }
  const last = deliveries.at(-1)
  const rejected = last !== undefined && lives.retries.of(last.id).some(({ dead }) => dead)
  const { reason, diedAt } = death
  const wasOver =
    last !== undefined && (lives.retries.of(last.id).length > 0 || mayBeOver(lives, last, AT_THE_END, diedAt))
  if (death.attempts !== deliveries.length)
    yield `${label} died with ${death.attempts} of ${deliveries.length} attempts`
  if (death.createdAt < birth.from || death.createdAt > birth.to)
    yield `${label} died with a wrong created_at`
  if (item.isLeased || item.attempts !== 0 || item.leaseDeadline !== null)
    yield `${label} is not a fresh letter`
  if (item.createdAt !== diedAt || item.expireDeadline !== null) yield `${label} has wrong times as a letter`
  if (rejected !== (reason === 'rejected'))
    yield `${label} died as '${reason}' and ${rejected ? 'was' : 'was not'} rejected`
  if (
    reason === 'attempts' &&
    (rules.maxAttempts === 0 || deliveries.length !== rules.maxAttempts || !wasOver)
  ) {
    yield `${label} died of ${deliveries.length} attempts; ${rules.maxAttempts} are allowed`
  }
  if (reason === 'expired' && diedAt <= death.createdAt + rules.expireUs) yield `${label} expired too early`
  const sameTenure = item.sourceId === last?.id
  if (reason !== 'expired' && !sameTenure)
    yield `${label} has source id ${item.sourceId}, not that of its last lease`
  if (reason === 'expired' && !sameTenure && item.sourceId <= (last?.id ?? ''))
    yield `${label} has an older source id`
  if (reason === 'expired' && sameTenure && !wasOver) yield `${label} was taken from a valid lease`
}

/** Receipts ascend, and one server delivers strictly in the order of ids: retried and requeued items too. */
function* checkOrder({ calls, rules, ending }: History, lives: Lives): Iterable<string> {
  const births = calls.filter((call) => call.verb === 'produce' && call.refused === null)
  let greatest = ''
  const ended = [...births].sort((a, b) => a.ended - b.ended)
  let next = 0
  for (const call of [...births].sort((a, b) => a.began - b.began)) {
    if (call.verb !== 'produce') continue
    for (let other = ended[next]; other !== undefined && other.ended < call.began; other = ended[++next]) {
      if (other.verb !== 'produce') continue
      for (const { id } of other.items) if (id > greatest) greatest = id
    }
    const ids = call.items.map(({ id }) => id)
    if (!ascends(ids)) yield `one call produced ids out of order: ${ids.join(', ')}`
    if (ids.some((id) => id <= greatest))
      yield `a later call produced an id that is not greater: ${ids.join(', ')}`
  }
  if (rules.servers > 1) return

  const delivered = [...lives.byLabel.values()]
    .flatMap(({ label, deliveries }) => deliveries.map((delivery) => ({ label, ...delivery })))
    .sort((a, b) => (a.id < b.id ? 1 : -1))
  // From the greatest id down: nothing may come later than what has a greater id.
  let soonestEnd = Number.POSITIVE_INFINITY
  let soonestAt: Instant | null = null
  for (const { label, lease, at, id } of delivered) {
    if (lease.began > soonestEnd || (soonestAt !== null && at > soonestAt)) {
      yield `${label} (${id}) was delivered after an item that stood behind it`
    }
    soonestEnd = Math.min(soonestEnd, lease.ended)
    soonestAt = soonestAt === null || at < soonestAt ? at : soonestAt
  }
  for (const item of ending.queued) {
    const overtaken = !item.isLeased && delivered.find(({ id }) => id > item.id)
    if (overtaken) yield `${labelOf(item)} still waits although ${overtaken.label} stood behind it`
  }
  for (const { sourceId, death, ...letter } of ending.dead) {
    if (death?.reason !== 'expired' || delivered.some(({ id }) => id === sourceId)) continue
    const expiresAt = death.createdAt + rules.expireUs
    const overtaken = delivered.find(({ id, at }) => id > sourceId && at <= expiresAt)
    if (overtaken) yield `${labelOf(letter)} expired although ${overtaken.label} behind it was delivered`
  }
}

/** Counts and ages are what the lists show. */
function* checkBooks({ now, queued, scheduled, dead, stats, depth, deadDepth }: Ending): Iterable<string> {
  const leased = queued.filter(({ isLeased }) => isLeased)
  const mean = (instants: readonly (Instant | null)[]): bigint =>
    instants.reduce<bigint>((sum, at) => sum + (at ?? 0n), 0n) / BigInt(instants.length)
  const expected = {
    partition: 0,
    total: queued.length,
    totalLeased: leased.length,
    scheduled: scheduled.length,
    failures: 0,
    averageAgeUs: queued.length === 0 ? 0n : now - mean(queued.map(({ createdAt }) => createdAt)),
    averageLeasedAgeUs:
      leased.length === 0 ? 0n : mean(leased.map(({ leaseDeadline }) => leaseDeadline)) - now,
  }
  const [shown] = stats.partitions
  for (const [key, value] of Object.entries(expected)) {
    const given = Object.entries(shown ?? {}).find(([name]) => name === key)?.[1]
    if (given !== value) yield `stats show ${key} ${given}, the lists ${value}`
  }
  if (stats.inFlight + stats.leaseWaiting + stats.produceWaiting + stats.completeWaiting !== 0) {
    yield 'stats show calls in flight when there are none'
  }
  const ready = queued.length - leased.length
  if (depth.ready !== ready || depth.leased !== leased.length || depth.scheduled !== scheduled.length) {
    yield `depths show ${depth.ready}, ${depth.leased}, ${depth.scheduled}; the lists ${ready}, ${leased.length}, ${scheduled.length}`
  }
  if (depth.oldestAt !== (queued[0]?.createdAt ?? null)) yield 'depths show a wrong oldest item'
  if (deadDepth !== null && (deadDepth.dead !== dead.length || deadDepth.ready !== dead.length)) {
    yield `depths show ${deadDepth.dead} dead letters of ${dead.length}`
  }
}

const ascends = (ids: readonly string[]): boolean => ids.every((id, i) => i === 0 || id > (ids[i - 1] ?? ''))
