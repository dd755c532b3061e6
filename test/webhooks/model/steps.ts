/** The steps of random histories: each is done by a server and by the reference. A step that finds nothing to be done on is skipped. */
import fc from 'fast-check'
import { expect } from 'vitest'
import type { ModelJob } from './reference.ts'
import { CHANNELS, CONSUMERS, succeeds, type World } from './world.ts'

const ACTOR = 'the test'
/** Claims are over by then, and retries due. */
const PASS_SECONDS = 15
const SCHEDULE_SECONDS = 130

export interface Step {
  readonly kind: keyof typeof STEPS
  /** Which of all that it can be done on. */
  readonly pick: number
  /** Which server does it. */
  readonly by: number
}

type Perform = (world: World, step: Step) => Promise<void>

function pickFrom<T>(from: readonly T[], { pick }: Step): T | undefined {
  return from[pick % Math.max(1, from.length)]
}

/** Does something with a job for which `from` is a choice. */
const withJob =
  (
    from: (world: World) => ModelJob[],
    act: (world: World, job: ModelJob, step: Step) => Promise<void>,
  ): Perform =>
  async (world, step) => {
    const job = pickFrom(from(world), step)
    if (job !== undefined) await act(world, job, step)
  }

const dead = ({ reference }: World) => reference.find('dead')
const move = async (world: World, job: ModelJob, { by }: Step, next: string): Promise<void> =>
  world.office(by).webhooks.jobs.move(await world.consumer(job.consumer), world.idOf(job), next, 0)

const requeue = async (world: World, job: ModelJob, by: number): Promise<void> =>
  world.office(by).webhooks.jobs.requeue(await world.consumer(job.consumer), world.idOf(job))
const erase = async (world: World, job: ModelJob, by: number): Promise<void> =>
  world.office(by).webhooks.jobs.erase(await world.consumer(job.consumer), world.idOf(job))

/** Acts of which only one can be done on a dead job. */
const RIVALS: readonly {
  readonly act: (world: World, job: ModelJob, by: number) => Promise<void>
  readonly apply: (world: World, job: ModelJob) => void
  readonly may: (world: World, job: ModelJob) => boolean
}[] = [
  { act: requeue, apply: ({ reference }, job) => reference.startOver(job), may: () => true },
  {
    act: (world, job, by) => world.act(job, by, 'retry'),
    apply: ({ reference }, job) => reference.startOver(job),
    may: () => true,
  },
  {
    act: erase,
    apply: ({ reference }, job) => reference.erase(job),
    may: ({ reference }, job) => reference.mayErase(job),
  },
  {
    act: (world, job, by) => world.act(job, by, 'Resolved'),
    apply: ({ reference }, job) => reference.putAside(job),
    may: () => true,
  },
  {
    act: (world, job, by) => world.act(job, by, 'Expired'),
    apply: ({ reference }, job) => reference.putAside(job),
    may: () => true,
  },
]

/** Two servers try something at the same time: one has its way. */
const race: Perform = withJob(dead, async (world, job, { pick, by }) => {
  const rivals = [pick, pick + by + 1].flatMap((n) => RIVALS[n % RIVALS.length] ?? [])
  const done = await Promise.all(rivals.map(({ act }, i) => succeeds(act(world, job, by + i))))
  const winners = rivals.filter((_, i) => done[i])
  expect(winners).toHaveLength(rivals.some(({ may }) => may(world, job)) ? 1 : 0)
  for (const { apply } of winners) apply(world, job)
})

/** A rival alone. */
const alone = (n: number): Perform =>
  withJob(dead, async (world, job, { by }) => {
    const rival = RIVALS[n]
    if (rival === undefined) return
    const may = rival.may(world, job)
    expect(await succeeds(rival.act(world, job, by))).toBe(may)
    if (may) rival.apply(world, job)
  })

const restore: Perform = withJob(
  ({ reference }) =>
    [...reference.jobs.values()].filter(({ letter }) => letter !== 'none' && letter !== 'pending'),
  async (world, job, { by }) => {
    const wasGone = job.state === 'gone'
    expect(await succeeds(world.act(job, by, 'Pending'))).toBe(world.reference.restore(job))
    if (wasGone && job.state === 'dead') await world.refresh(job)
  },
)

/** All that a consumer has dies and is discarded, so that it may be deleted. */
const clear: Perform = async (world, step) => {
  const { reference } = world
  for (const job of reference.jobsOf('d/k')) {
    if (job.state === 'queued') await move(world, job, step, 'INFLIGHT')
    if (job.state === 'queued' || job.state === 'in flight') {
      await move(world, job, step, 'DEAD')
      reference.die(job, false)
    }
    if (job.state !== 'dead') continue
    await world.act(job, step.by, 'Resolved')
    reference.putAside(job)
  }
}

export const STEPS = {
  broadcast: (world, step) => world.broadcast(pickFrom(CHANNELS, step) ?? 'c', step.by, null),
  schedule: (world, step) => world.broadcast(pickFrom(CHANNELS, step) ?? 'c', step.by, SCHEDULE_SECONDS),
  claim: withJob(
    ({ reference }) => reference.find('queued', true),
    async (world, job, step) => {
      await move(world, job, step, 'INFLIGHT')
      job.state = 'in flight'
    },
  ),
  deliver: withJob(
    ({ reference }) => reference.find('in flight', true).filter(({ consumer }) => consumer !== 'd/k'),
    async (world, job, step) => {
      await move(world, job, step, 'DELIVERED')
      world.reference.delivered(job)
    },
  ),
  'give up': withJob(
    ({ reference }) => reference.find('in flight', true),
    async (world, job, step) => {
      await move(world, job, step, 'DEAD')
      world.reference.die(job, false)
    },
  ),
  take: withJob(
    ({ reference }) => reference.find('dead', true),
    async (world, job, step) => {
      await move(world, job, step, 'INFLIGHT')
      world.reference.take(job)
    },
  ),
  requeue: alone(0),
  retry: alone(1),
  erase: alone(2),
  discard: alone(3),
  expire: alone(4),
  restore,
  race,
  clear,
  'requeue all': async (world, step) => {
    const consumer = pickFrom([...world.reference.consumers.keys()], step)
    if (consumer === undefined) return
    await world.office(step.by).webhooks.bulk.requeueAll(await world.consumer(consumer), ACTOR)
    for (const job of world.reference.jobsOf(consumer)) {
      if (job.state === 'dead') world.reference.startOver(job)
    }
  },
  purge: async (world, step) => {
    const { reference } = world
    const consumer = pickFrom([...reference.consumers.keys()], step)
    if (consumer === undefined) return
    const going = reference.jobsOf(consumer).filter((job) => reference.mayErase(job))
    const purged = await world.office(step.by).webhooks.bulk.purge(await world.consumer(consumer), ACTOR)
    expect(purged).toBe(going.length)
    for (const job of going) reference.erase(job)
  },
  'delete or register a consumer': async (world, step) => {
    const missing = CONSUMERS.filter((consumer) => !world.reference.consumers.has(consumer))
    const consumer = missing[0]
    if (consumer !== undefined) await world.register(consumer, step.by)
    else await world.unregister(pickFrom(['d/k', 'd/k', ...CONSUMERS], step) ?? 'd/k', step.by)
  },
  'let time pass': (world) => world.pass(PASS_SECONDS),
  'let minutes pass': (world) => world.pass(SCHEDULE_SECONDS + PASS_SECONDS),
  'expire old letters': async (world, step) => {
    await world.check()
    const old = world.reference.find('dead')
    await world.pass(2 * 86_400)
    await world.check()
    const expired = await world.office(step.by).letters.expireOlder({
      olderThanDays: 1,
      engine: 'webhooks',
      actor: ACTOR,
    })
    expect(expired).toBe(old.length)
    for (const job of old) world.reference.putAside(job)
  },
  'accept or refuse callbacks': async (world) => {
    world.isAccepting = !world.isAccepting
  },
  fold: (world) => world.fold(),
  restart: (world, step) => world.restart(step.by),
} satisfies Record<string, Perform>

/** How often each kind comes. */
const WEIGHTS: Readonly<Partial<Record<keyof typeof STEPS, number>>> = {
  broadcast: 6,
  claim: 8,
  'give up': 6,
  'let time pass': 3,
  race: 4,
  restore: 4,
  take: 3,
}

// The keys of a constant record are its names.
const KINDS = Object.keys(STEPS) as (keyof typeof STEPS)[]

export const steps: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(...KINDS.map((kind) => ({ weight: WEIGHTS[kind] ?? 1, arbitrary: fc.constant(kind) }))),
  pick: fc.nat(1_000),
  by: fc.nat(1),
})

/** Does a step; a moment passes with each, as in life. */
export async function perform(world: World, step: Step): Promise<void> {
  await world.broker.office.advanceClock(1_000n)
  await STEPS[step.kind](world, step)
  await world.check()
}
