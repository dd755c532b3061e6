/** Plain queues: items that die become letters in their dead queue. The queues themselves are a layer below. */
import type { SourceModule } from '../source-module.ts'

export const queuesModule: SourceModule = {
  name: 'queues',
  title: 'Queues',
}
