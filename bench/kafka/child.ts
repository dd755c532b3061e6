/** One measurement in a process of its own. */
import { measureBare } from './bare.ts'
import { measureIntake } from './intake.ts'
import { loadLetters } from './load.ts'
import type { Rate, Task } from './task.ts'

// The parent wrote it.
const task = JSON.parse(process.argv[2] ?? '{}') as Task
const answer = await measure()
process.send?.(answer, () => process.exit(0))

function measure(): Promise<Rate> {
  switch (task.act) {
    case 'bare':
      return measureBare(task)
    case 'intake':
      return measureIntake(task)
    case 'load':
      return loadLetters(task)
  }
}
