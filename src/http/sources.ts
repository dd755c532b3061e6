/** The sources of an office, as a server asks them. */
import type { ServedSource } from '../api/source-http.ts'
import type { Config } from '../config/index.ts'
import type { Office } from '../office.ts'
import { servedEngines } from '../sources/engines/routes.ts'
import { SOURCES } from '../sources/index.ts'
import { servedKafka } from '../sources/kafka/served.ts'
import { OutboxReadings } from '../sources/outbox/readings.ts'
import { servedOutboxes } from '../sources/outbox/served.ts'
import { servedQueues } from '../sources/queues/served.ts'
import { servedWebhooks } from '../sources/webhooks/served.ts'

interface NamedSource extends ServedSource {
  readonly name: string
  readonly title: string
}

export function sourcesOf(office: Office, config: Config): readonly NamedSource[] {
  const { queues, clock, letters } = office
  const { ledger } = letters
  const served: Readonly<Record<string, ServedSource>> = {
    queues: servedQueues({ queues, ledger, maxProduceBytes: config.queues.maxProduceBytes }),
    engines: servedEngines({ engines: office.engines, statistics: office.engineStatistics, ledger }),
    outbox: servedOutboxes(new OutboxReadings(() => office.outboxes.all(), clock)),
    webhooks: servedWebhooks(office.webhooks),
    kafka: servedKafka(office.kafka),
  }
  return SOURCES.map(({ name, title }) => ({ name, title, ...served[name] }))
}
