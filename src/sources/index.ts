/** The sources of letters, in the order in which they are opened and shown. A new source is a line here. */
import { enginesModule } from './engines/module.ts'
import { reportsModule } from './http/module.ts'
import { kafkaModule } from './kafka/module.ts'
import { outboxModule } from './outbox/module.ts'
import { queuesModule } from './queues/module.ts'
import type { SourceModule } from './source-module.ts'
import { webhooksModule } from './webhooks/module.ts'

const LIST = [queuesModule, enginesModule, outboxModule, webhooksModule, kafkaModule, reportsModule] as const

export const SOURCES: readonly SourceModule[] = LIST

/** Which they are, with what each brings. */
export type ListedSource = (typeof LIST)[number]
