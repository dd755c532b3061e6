/** Opens engines in an office: makes their views, records their queues, and gives workers. */
import { withDefaults } from '../../core/settings/read.ts'
import { readCase } from '../../letters/confirm.ts'
import { TablesSchema } from '../../outgoing/azure/keys.ts'
import { recordEngineQueues } from '../../queues/engines/engine-queues.ts'
import type { OfficeParts, OpenSource } from '../source-module.ts'
import { createEngine, type Engine } from './engine.ts'
import type { EnginesFace, EnginesOptions } from './module.ts'
import type { EngineOptions } from './options.ts'
import { EngineStatistics } from './statistics.ts'
import { createEngineViews } from './views.ts'

/** Of the ten seconds of a stop. */
const STOP_MS = 5_000

export async function openEngines(
  { store: { db }, clock, log, queues, letters, engines }: OfficeParts,
  options: EnginesOptions | undefined,
): Promise<OpenSource<EnginesFace>> {
  await createEngineViews(db, withDefaults(TablesSchema, options?.tables))
  await recordEngineQueues(db, log, engines.queues())
  const workers = new Set<Engine>()
  const office = {
    ...{ queues, clock, log, directory: engines },
    readCase: (id: Parameters<typeof readCase>[1]) =>
      db.session('cases.read', (session) => readCase(session, id)),
    claimQueue: (engine: string, queue: string) => recordEngineQueues(db, log, [{ engine, queue }]),
  }
  const engineStatistics = new EngineStatistics(db, clock)
  const served = { engines, statistics: engineStatistics, numbers: letters.numbers }
  return {
    letters: queues.letterSource('engines'),
    http: { serve: async (server) => (await import('./routes.ts')).engineApi(served, server) },
    face: {
      engines,
      engineStatistics,
      engine<Message>(options: EngineOptions<Message>) {
        const worker = createEngine(office, options)
        workers.add(worker)
        return worker
      },
    },
    services: [
      {
        name: 'engines',
        stop: async () => {
          await Promise.all([...workers].map((worker) => worker.stop({ timeoutMs: STOP_MS })))
        },
      },
    ],
  }
}
