/** Reports: failures of other systems, over HTTP. Their letters go back to queues. */
import type { TSchema } from 'typebox'
import type { SourceModule } from '../source-module.ts'

export const reportsModule: SourceModule<'http', TSchema, undefined> = {
  name: 'http',
  title: 'HTTP reports',
  kind: { goesToQueues: true, ordersByKey: true, takesReports: true },
  open({ queues }) {
    return { letters: queues.letterSource(this.name), services: [], face: {} }
  },
  demo: async () => (await import('./demo.ts')).reportsDemo,
}
