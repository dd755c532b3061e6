/** Webhooks: jobs that a consumer did not take. */
import type { SourceModule } from '../source-module.ts'
import { webhookInvariants } from './invariants.ts'
import { webhookMigration } from './schema.ts'
import { servedWebhooks } from './served.ts'
import { problemsOfWebhooks, type WebhookOptions, WebhooksSchema, webhookSettings } from './settings.ts'
import type { Webhooks } from './webhooks.ts'

export interface WebhooksFace {
  readonly webhooks: Webhooks
}

export const webhooksModule: SourceModule<'webhooks', typeof WebhooksSchema, WebhookOptions, WebhooksFace> = {
  name: 'webhooks',
  title: 'Webhooks',
  // Servers deliver; a retry only puts jobs back.
  settings: { schema: WebhooksSchema, problems: problemsOfWebhooks, isForServers: true },
  kind: { unrepairable: 'letters of webhooks cannot be repaired: each consumer gets what was broadcast' },
  invariants: webhookInvariants,
  migrations: [webhookMigration],
  async open({ store: { db }, clock, log, registers, runs, queues: { announcer } }, options) {
    const { CountFolder } = await import('../../store/fold.ts')
    const { webhookCounter } = await import('./numbers/counts.ts')
    const { Webhooks } = await import('./webhooks.ts')
    const settings = webhookSettings(options ?? {})
    const webhooks = new Webhooks({ db, clock, log, registers, runs, announcer, settings })
    const everyMs = settings.dlq.summaryIntervalSeconds * 1_000
    const folder = new CountFolder(webhookCounter, { db, clock, log, everyMs })
    // Without the section other servers deliver; what is broadcast here is finished all the same.
    const delivery = options === undefined ? { name: this.name, stop: () => webhooks.stop() } : webhooks
    return {
      letters: webhooks.source,
      services: [folder, delivery],
      face: { webhooks },
      ...servedWebhooks(webhooks),
    }
  },
  demo: async () => (await import('./demo.ts')).webhooksDemo,
}
