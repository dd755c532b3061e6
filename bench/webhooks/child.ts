/** One measurement in a process of its own, on an empty store. */

import { answerTask } from '../measuring.ts'
import { measureBacklog } from './backlog.ts'
import { measureBulk } from './bulk.ts'
import { measureDeliver } from './deliver.ts'
import { measureDlqStatus } from './dlq-status.ts'
import { measureHang } from './hang.ts'
import type { Answers, Task } from './task.ts'

await answerTask(measure)

function measure(task: Task): Promise<Answers[keyof Answers]> {
  const { store, sizes } = task
  switch (task.part) {
    case 'deliver':
      return measureDeliver(store, task.order.consumers, sizes)
    case 'backlog':
      return measureBacklog(store, sizes)
    case 'hang':
      return measureHang(store, task.order.hanging, sizes)
    case 'dlq-status':
      return measureDlqStatus(store, task.order.dead, sizes)
    case 'bulk':
      return measureBulk(store, task.order.act, sizes)
  }
}
