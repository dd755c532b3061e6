/** One measurement in a process of its own. */

import { answerTask } from '../measuring.ts'
import { measureBare } from './bare.ts'
import { measureCancels } from './cancel.ts'
import { measureRun } from './full-speed.ts'
import { measureLive } from './live.ts'
import { load } from './load.ts'
import { measureRate } from './rate.ts'
import { measureSource } from './sources.ts'
import type { Answers, Task } from './task.ts'

await answerTask(measure)

function measure(task: Task): Promise<Answers[Task['act']]> {
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
