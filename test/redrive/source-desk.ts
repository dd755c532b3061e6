/** Redrives on a store without an office around it: for letters of one source, whose other end tests hold in their hands. */
import type { Clock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import type { LetterFilter } from '../../src/letters/lists/filter.ts'
import type { LetterSource } from '../../src/letters/source.ts'
import { type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import type { RedriveAction, RedriveCounts, RedriveDetail } from '../../src/redrive/redrive.ts'
import { Redrives } from '../../src/redrive/redrives.ts'
import type { Database } from '../../src/store/database.ts'
import { PLAIN } from '../world/redrive-office.ts'

export class SourceDesk {
  readonly redrives: Redrives
  readonly #runs: OfficeRuns

  constructor(db: Database, clock: Clock, source: LetterSource) {
    this.#runs = officeRuns(db, clock, silentLog)
    this.redrives = new Redrives({
      ...{ db, clock, log: silentLog, runs: this.#runs, sources: new Map([[source.name, source]]) },
      ...{ engines: new EngineDirectory({ context: 'publisher' }), retentionDays: 90 },
    })
    this.#runs.start()
  }

  async stop(): Promise<void> {
    await this.#runs.stop()
    await this.redrives.stop()
  }

  plan(filter: LetterFilter, action: RedriveAction = 'retry'): Promise<RedriveDetail> {
    return this.redrives.plan({
      selection: { by: 'filter', filter },
      ...{ action, queue: null, recipe: null, terms: PLAIN, actor: 'nell' },
      reason: action === 'discard' ? 'not needed' : null,
    })
  }

  /** A plan that is started, and gone on with until it waits for something. */
  async run(filter: LetterFilter, action: RedriveAction = 'retry'): Promise<RedriveDetail> {
    const { id } = await this.plan(filter, action)
    await this.redrives.start(id, 'nell')
    await this.redrives.settle()
    return this.redrives.read(id)
  }

  /** One that is paused goes on. */
  async resume({ id }: Pick<RedriveDetail, 'id'>): Promise<RedriveDetail> {
    await this.redrives.resume(id, 'nell')
    await this.redrives.settle()
    return this.redrives.read(id)
  }

  async counts({ id }: Pick<RedriveDetail, 'id'>): Promise<RedriveCounts> {
    return (await this.redrives.read(id)).counts
  }
}
