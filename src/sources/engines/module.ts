/** Engines: named workers whose dead messages and operations are the unified tables. */
import { readCase } from '../../letters/confirm.ts'
import type { EngineDirectory, EngineSettings } from '../../queues/engine-directory.ts'
import { recordEngineQueues } from '../../queues/engine-queues.ts'
import type { SourceModule } from '../source-module.ts'
import { createEngine, type Engine } from './engine.ts'
import type { EngineMessage, EngineOptions } from './options.ts'
import { EnginesSchema, problemsOfEngines } from './settings.ts'
import { EngineStatistics } from './statistics.ts'
import { type EngineTables, storeTables } from './tables.ts'
import { createEngineViews, type ViewNames } from './views.ts'

/** Which engines there are, and how long their letters and history are kept. Without a context every name may be one. */
export type EnginesOptions = EngineSettings & {
  readonly tables?: Partial<ViewNames> & { /** Default 90. */ readonly retentionDays?: number }
}

export interface EnginesFace {
  /** The engines that there are. */
  readonly engines: EngineDirectory
  /** How they did lately. */
  readonly engineStatistics: EngineStatistics
  /** Letters and history as the unified tables, wherever these are kept. */
  readonly tables: EngineTables
  /**
   * A worker on the queue of an engine; start it to begin. The office stops it when it is drained, unless that
   * was done before.
   */
  engine<Message = EngineMessage>(options: EngineOptions<Message>): Engine
}

const DEFAULT_VIEWS: ViewNames = { dlqTableName: 'engineDlq', historyTableName: 'engineHistory' }
/** Handlers get this long to finish; the whole of a stop has ten seconds. */
const STOP_MS = 5_000

export const enginesModule: SourceModule<'engines', typeof EnginesSchema, EnginesOptions, EnginesFace> = {
  name: 'engines',
  title: 'Engines',
  settings: {
    schema: EnginesSchema,
    aliases: { engineTablesConfig: 'tables' },
    problems: problemsOfEngines,
  },
  kind: { goesToQueues: true, ordersByKey: true, hasEngines: true, capturesItems: true },
  async open({ store: { db }, clock, log, queues, letters, history, engines }, options) {
    await createEngineViews(db, { ...DEFAULT_VIEWS, ...options?.tables })
    await recordEngineQueues(db, log, engines.queues())
    const workers = new Set<Engine>()
    const office = {
      ...{ queues, clock, log, directory: engines },
      readCase: (id: Parameters<typeof readCase>[1]) =>
        db.session('cases.read', (session) => readCase(session, id)),
      claimQueue: (engine: string, queue: string) => recordEngineQueues(db, log, [{ engine, queue }]),
    }
    return {
      letters: queues.letterSource(this.name),
      face: {
        engines,
        engineStatistics: new EngineStatistics(db, clock),
        tables: storeTables(letters, history),
        engine<Message>(options: EngineOptions<Message>) {
          const worker = createEngine(office, options)
          workers.add(worker)
          return worker
        },
      },
      stop: async () => {
        await Promise.all([...workers].map((worker) => worker.stop({ timeoutMs: STOP_MS })))
      },
    }
  },
}
