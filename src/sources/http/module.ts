/** Reports: failures that other systems tell over HTTP. */
import type { SourceModule } from '../source-module.ts'

export const reportsModule: SourceModule<'http'> = {
  name: 'http',
  title: 'HTTP',
}
