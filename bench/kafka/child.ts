/** One measurement in a process of its own. */

import { answerTask } from '../measuring.ts'
import { measureBare } from './bare.ts'
import { measureIntake } from './intake.ts'
import { loadLetters } from './load.ts'
import type { Rate, Task } from './task.ts'

await answerTask(measure)

function measure(task: Task): Promise<Rate> {
  switch (task.act) {
    case 'bare':
      return measureBare(task)
    case 'intake':
      return measureIntake(task)
    case 'load':
      return loadLetters(task)
  }
}
