/** One measurement in a process of its own. */
import { measureBare } from './bare.ts'
import { measureCancels } from './cancel.ts'
import { measureRun } from './full-speed.ts'
import { measureLive } from './live.ts'
import { load } from './load.ts'
import { measureRate } from './rate.ts'
import { measureSource } from './sources.ts'
import type { Answers, Task } from './task.ts'

// A signal ends the process by its 'exit' event, at which the server it has started is stopped.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

// The parent wrote it.
const task = JSON.parse(process.argv[2] ?? '{}') as Task
const answer = await measure()
process.send?.(answer, () => process.exit(0))

function measure(): Promise<Answers[Task['act']]> {
  switch (task.act) {
    case 'load':
      return load(task)
    case 'run':
      return measureRun(task)
    case 'bare':
      return measureBare(task)
    case 'source':
      return measureSource(task)
    case 'live':
      return measureLive(task)
    case 'cancel':
      return measureCancels(task)
    case 'rate':
      return measureRate(task)
  }
}
