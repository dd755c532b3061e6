/** Webhooks: jobs that a consumer did not take. */
import type { SourceModule } from '../source-module.ts'
import { webhookMigration } from './schema.ts'
import { problemsOfWebhooks, WebhooksSchema } from './settings.ts'

export const webhooksModule: SourceModule<'webhooks', typeof WebhooksSchema> = {
  name: 'webhooks',
  title: 'Webhooks',
  settings: { schema: WebhooksSchema, problems: problemsOfWebhooks },
  migrations: [webhookMigration],
}
