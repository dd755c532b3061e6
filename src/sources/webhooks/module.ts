/** Webhooks: jobs that a consumer did not take. */
import type { SourceModule } from '../source-module.ts'
import { webhookMigration } from './schema.ts'

export const webhooksModule: SourceModule = {
  name: 'webhooks',
  title: 'Webhooks',
  migrations: [webhookMigration],
}
