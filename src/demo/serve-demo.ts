/**
 * A demo: the server with an office that is alive. Its partners, workers, customers and past are invented and live in this
 * process; everything else is the product as it is.
 *
 *   look at the store ─► partners listen ─► office opens in the past ─► past is filed ─► served ─► live ─► stop
 */
import { setTimeout as rest } from 'node:timers/promises'
import type { Config } from '../config/index.ts'
import { type RunningServer, serve } from '../http/serve.ts'
import { Chance } from './chance.ts'
import { CatchUpClock } from './clock.ts'
import { type DemoTerms, demoConfig } from './config.ts'
import { startEngines } from './engine-roles.ts'
import { Partners } from './partners.ts'
import { hoursUs, PAST_HOURS, Past } from './past.ts'
import type { PastParts } from './past-work.ts'
import { consumePlainQueues, makeQueues } from './plain-queues.ts'
import { Receiver } from './receiver.ts'
import { checkDemoStore } from './store.ts'
import { Traffic } from './traffic.ts'
import { DEMO_SIGNATURES } from './troubles.ts'
import { World } from './world.ts'

export interface DemoOptions extends DemoTerms {
  /** Tells the person at the terminal what happens. */
  readonly say: (line: string) => void
  /** How far back its past goes; left out: as far as can be filed in a moment. */
  readonly pastHours?: number
}

/** The past is the same in every demo; the present is not, or its reports would be known already after a restart. */
const PAST_SEED = 1853

/** What happens ends within a moment; a store that does not answer must not hold up the stop. */
const LAST_ACTS_MS = 1_000

/** Serves a demo; resolves when its past is filed and its present has begun. */
export async function serveDemo(config: Config, options: DemoOptions): Promise<RunningServer> {
  const { isNew } = options.storeIsGiven ? await checkDemoStore(config.store) : { isNew: true }
  const world = new World()
  const receiver = new Receiver(world)
  const settings = demoConfig(config, options, await receiver.listen())
  const hours = options.pastHours ?? (options.storeIsGiven ? PAST_HOURS.onDisk : PAST_HOURS.inMemory)
  const clock = new CatchUpClock(isNew ? hoursUs(hours) : 0n)
  if (!isNew) clock.release()
  try {
    const server = await serve(settings, {
      clock,
      demo: DEMO_SIGNATURES,
      prepare: async (office) => {
        await makeQueues(office)
        if (isNew && options.storeIsGiven) options.say('demo: filing a day of past, which takes some seconds')
        if (isNew) await filePast({ office, clock, world }, hours)
        clock.release()
      },
    })
    return await withLife(server, { receiver, world, say: options.say })
  } catch (error) {
    await receiver.close()
    throw error
  }
}

async function filePast(parts: Pick<PastParts, 'office' | 'clock' | 'world'>, hours: number): Promise<void> {
  const partners = new Partners(parts.office)
  await new Past({ ...parts, chance: new Chance(PAST_SEED), partners }, hours).file()
}

interface Life {
  readonly receiver: Receiver
  readonly world: World
  readonly say: (line: string) => void
}

/** The server with people and machines at work; its stop ends them first, and partners last. */
async function withLife(server: RunningServer, { receiver, world, say }: Life): Promise<RunningServer> {
  const { office } = server
  const now = office.clock.now()
  const chance = new Chance(Number(now % 0xffff_ffffn))
  const ended = new AbortController()
  const { signal } = ended
  world.begin(now)
  try {
    await startEngines(office, world, chance)
  } catch (error) {
    await server.stop()
    throw error
  }
  const traffic = new Traffic({ office, world, partners: new Partners(office), chance, say, signal })
  const live = Promise.all([traffic.run(), consumePlainQueues(office, world, signal)])
  const end = async (): Promise<void> => {
    ended.abort()
    await Promise.race([live, rest(LAST_ACTS_MS, undefined, { ref: false })])
    try {
      await server.stop()
    } finally {
      await receiver.close()
    }
  }
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= end()
    return stopped
  }
  return { ...server, stop }
}
