/**
 * A demo: the server with an office that is alive. Its partners, workers, customers and past are invented and live in this
 * process; everything else is the product as it is.
 *
 *   look at the store ─► partners listen ─► office opens in the past ─► past is filed ─► served ─► live ─► stop
 */
import { setTimeout as rest } from 'node:timers/promises'
import type { Config } from '../config/index.ts'
import { type RunningServer, serve } from '../http/serve.ts'
import type { Office } from '../office.ts'
import { type DemoSource, type DemoTerms, demoConfig, demoSources } from './config.ts'
import { hoursUs, PAST_HOURS, Past } from './past.ts'
import { checkDemoStore } from './store.ts'
import type { DemoPart } from './story/story.ts'
import { Traffic } from './traffic.ts'
import { CatchUpClock, World } from './world.ts'

export interface DemoOptions extends DemoTerms {
  /** For the person at the terminal. */
  readonly say: (line: string) => void
  /** Left out: as much as can be filed in a moment. */
  readonly pastHours?: number
}

/** A store that does not answer must not hold up the stop. */
const LAST_ACTS_MS = 1_000

/** Resolves when the past is filed and the present has begun. */
export async function serveDemo(config: Config, options: DemoOptions): Promise<RunningServer> {
  const { storeIsGiven, say } = options
  const sources = await demoSources()
  const { isNew } = storeIsGiven ? await checkDemoStore(config.store, sources) : { isNew: true }
  const hours = options.pastHours ?? (storeIsGiven ? PAST_HOURS.onDisk : PAST_HOURS.inMemory)
  const clock = new CatchUpClock(isNew ? hoursUs(hours) : 0n)
  if (!isNew) clock.release()
  const world = new World(clock)
  await world.listen()
  try {
    const [signatures] = sources.flatMap(({ demo }) => demo?.signatures ?? [])
    const server = await serve(demoConfig(config, options, sources, world), {
      clock,
      ...(signatures === undefined ? {} : { demo: signatures }),
      prepare: async (office) => {
        world.parts = await openParts(office, sources, world)
        if (isNew && storeIsGiven) say('demo: filing a day of past, which takes some seconds')
        if (isNew) await new Past(office, world, hours).file()
        world.beginPresent()
      },
    })
    return await withLife(server, world, say)
  } catch (error) {
    await world.close()
    throw error
  }
}

export async function openParts(
  office: Office,
  sources: readonly DemoSource[],
  world: World,
): Promise<readonly DemoPart[]> {
  const parts: DemoPart[] = []
  // An office has the faces of all sources.
  for (const { demo } of sources) if (demo !== undefined) parts.push(await demo.open(office, world))
  return parts
}

/** A stop ends people and machines first, partners last. */
async function withLife(
  server: RunningServer,
  world: World,
  say: (line: string) => void,
): Promise<RunningServer> {
  const ended = new AbortController()
  try {
    for (const part of world.parts) await part.start?.()
  } catch (error) {
    await server.stop()
    throw error
  }
  const { letters } = server.office
  const traffic = new Traffic({ letters, world, say, signal: ended.signal }).run()
  const end = async (): Promise<void> => {
    ended.abort()
    const live = Promise.all([traffic, ...world.parts.map((part) => part.stop?.())])
    await Promise.race([live, rest(LAST_ACTS_MS, undefined, { ref: false })])
    try {
      await server.stop()
    } finally {
      await world.close()
    }
  }
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= end()
    return stopped
  }
  return { ...server, stop }
}
