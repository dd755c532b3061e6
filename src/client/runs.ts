/** A typed client of runs: work over many rows that any server goes on with. */

import { sleep } from '../core/waiting.ts'
import type { RunItem, RunState } from '../work/shapes.ts'
import { OfficeCalls, type Page, type PageRequest, pathTo, type WriteOptions } from './envelope.ts'
import { OfficeClientError } from './errors.ts'
import type { CallOptions } from './transport.ts'

export type { RunItem, RunState } from '../work/shapes.ts'

export interface RunListRequest extends PageRequest {
  readonly kinds?: readonly string[]
  readonly states?: readonly RunState[]
}

export const RUNS = '/api/runs'

const LOOK_EVERY_MS = 1_000

/** Rows done by a run, once it has ended. One that was paused or cancelled is not waited for. */
export async function doneBy(
  begun: RunItem,
  { signal = new AbortController().signal }: CallOptions = {},
  look: (id: string) => Promise<RunItem>,
): Promise<number> {
  let run = begun
  while (run.state === 'running') {
    await sleep(LOOK_EVERY_MS, signal)
    run = await look(run.id)
  }
  const { id, state, counts } = run
  if (state === 'done') return counts.done
  const message = `run ${id} did not come to its end; it is ${state} after ${counts.done}; bartleby runs show ${id} says why`
  throw new OfficeClientError('run_broken_off', 409, message, { details: { id, state, done: counts.done } })
}

/**
 * @example
 * const runs = new RunClient({ url: 'http://127.0.0.1:1853' })
 * for (const run of (await runs.list({ states: ['running'] })).items) console.log(run.kind, run.counts.done)
 */
export class RunClient extends OfficeCalls {
  /** One page of runs, the newest first. */
  list({ kinds, states, ...page }: RunListRequest = {}, options?: CallOptions): Promise<Page<RunItem>> {
    const query = { ...page, kind: kinds?.join(','), state: states?.join(',') }
    return this.fetchPage(RUNS, query, options)
  }

  read(id: string, options?: CallOptions): Promise<RunItem> {
    return this.fetch(pathTo(RUNS, id), {}, options)
  }

  /** Halts it; nothing more is done after the answer. */
  pause(id: string, reason?: string, options?: WriteOptions): Promise<RunItem> {
    return this.#steer(id, 'pause', { reason }, options)
  }

  /** Lets it go on where it was. */
  resume(id: string, options?: WriteOptions): Promise<RunItem> {
    return this.#steer(id, 'resume', {}, options)
  }

  /** Ends it; what was not done stays as it is. */
  cancel(id: string, reason?: string, options?: WriteOptions): Promise<RunItem> {
    return this.#steer(id, 'cancel', { reason }, options)
  }

  #steer(id: string, verb: string, body: object, options: WriteOptions | undefined): Promise<RunItem> {
    return this.post(`${pathTo(RUNS, id)}/${verb}`, body, options)
  }
}
