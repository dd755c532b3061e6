/** The engines at work: each takes its messages, a moment over each, and fails at those that it cannot take. */
import type { Engine } from '../engines/engine.ts'
import { pause } from '../engines/waiting.ts'
import type { Office } from '../office.ts'
import type { Chance } from './chance.ts'
import { billing, ENGINE_ROLES, type EngineRole, instanceOf } from './engine-roles.ts'
import { errorOf } from './troubles.ts'
import type { World } from './world.ts'

/** Starts a worker for each engine; the office stops them. */
export async function startEngines(office: Office, world: World, chance: Chance): Promise<void> {
  const engines = ENGINE_ROLES.map((role) => workerOf(role, office, world, chance))
  await Promise.all(engines.map((engine) => engine.start()))
}

function workerOf(role: EngineRole, office: Office, world: World, chance: Chance): Engine {
  const { name, operation, maxAttempts, runMs, judge } = role
  return office.engine({
    name,
    operation,
    maxAttempts,
    backoff: { base: '2s', factor: 2, max: '10s', jitter: 0.3 },
    concurrency: 16,
    timeout: '30s',
    instanceId: instanceOf,
    handler: async (message, { attempt, signal }) => {
      await pause(office.clock, BigInt(chance.whole(1, runMs)) * 1_000n, signal)
      const trouble = judge(message, world)
      if (name === billing.name)
        remember(world, String(message.invoice), trouble !== null, attempt === maxAttempts)
      if (trouble !== null) throw errorOf(trouble)
      return { ok: true, by: `${name}-worker`, attempt }
    },
  })
}

/** An invoice that dies finds its period open the next time. */
function remember(world: World, invoice: string, hasFailed: boolean, isLast: boolean): void {
  if (!hasFailed) world.posted(invoice)
  else if (isLast) world.died(invoice)
}
