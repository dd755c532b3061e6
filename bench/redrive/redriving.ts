/** What all measurements do with redrives. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Office, RedriveDetail } from '../../src/index.ts'

export const ACTOR = 'bench'

/** A plan to send back all letters that are pending; one that takes longer than a call is waited for. */
export async function planAll({ redrives }: Office, rate: number | null = null): Promise<RedriveDetail> {
  let plan = await redrives.plan({
    selection: { by: 'filter', filter: {} },
    action: 'retry',
    queue: null,
    recipe: null,
    terms: { rate, canary: null, stopRule: null, order: 'key' },
    reason: null,
    actor: ACTOR,
  })
  while (plan.state === 'planning') {
    await pause(100)
    plan = await redrives.read(plan.id)
  }
  return plan
}

/** Starts a plan and waits until all of it was sent. */
export async function carryOut({ redrives }: Office, id: RedriveDetail['id']): Promise<RedriveDetail> {
  const over = Promise.withResolvers<void>()
  redrives.listen({ ended: () => over.resolve() })
  await redrives.start(id, ACTOR)
  for (;;) {
    await Promise.race([over.promise, pause(1_000)])
    const redrive = await redrives.read(id)
    const { state, note, counts } = redrive
    if (state === 'done' && counts.sent === counts.planned) return redrive
    if (state !== 'running') throw new Error(`the redrive is ${state}: ${note}, ${JSON.stringify(counts)}`)
  }
}

/** Waits until some letters were sent. */
export async function untilUnderWay({ redrives }: Office, id: RedriveDetail['id']): Promise<void> {
  while ((await redrives.read(id)).counts.sent === 0) await pause(10)
}
