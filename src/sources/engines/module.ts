/** Engines: named workers whose dead messages and operations are the unified tables. */
import type { SourceModule } from '../source-module.ts'

export const enginesModule: SourceModule = {
  name: 'engines',
  title: 'Engines',
}
