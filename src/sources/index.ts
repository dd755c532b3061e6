/** The sources of letters, in the order in which they are opened and shown. A new source is a line here. */
import { declareKind } from '../letters/kinds.ts'
import { azureModule } from './azure/module.ts'
import { enginesModule } from './engines/module.ts'
import { reportsModule } from './http/module.ts'
import { kafkaModule } from './kafka/module.ts'
import { outboxModule } from './outbox/module.ts'
import { queuesModule } from './queues/module.ts'
import type { SourceModule } from './source-module.ts'
import { webhooksModule } from './webhooks/module.ts'

const LIST = [
  queuesModule,
  enginesModule,
  outboxModule,
  webhooksModule,
  kafkaModule,
  azureModule,
  reportsModule,
] as const

export const SOURCES: readonly SourceModule[] = LIST

for (const { name, kind } of SOURCES) declareKind({ ...kind, name })

export type ListedSource = (typeof LIST)[number]

/** Options of `Office.open`, each under its source's name. */
export type SourceOptions = {
  readonly [Module in ListedSource as OptionsOf<Module> extends undefined
    ? never
    : Module['name']]?: OptionsOf<Module>
}

type OptionsOf<Module> = Module extends SourceModule<string, infer _, infer Options> ? Options : never

/** Everything that sources add to an office. */
export type SourceFaces = AllOf<ListedSource extends infer Module ? FaceOf<Module> : never>

type FaceOf<Module> = Module extends SourceModule<string, infer _, infer __, infer Face> ? Face : never

/** A union as an intersection. */
type AllOf<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All
  : never
