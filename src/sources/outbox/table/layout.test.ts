import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { createDispatcher } from '../dispatcher/create-dispatcher.ts'
import { outboxSchema } from './schema.ts'

describe.each(stores.filter(({ name }) => name === 'postgres'))(
  'a table with types of its own on $name',
  (kind) => {
    it('is an outbox, whatever case their names are in', async () => {
      const store = await kind.fresh()
      const client = new pg.Client(store.url)
      await client.connect()
      await client.query(`
      CREATE DOMAIN "MessageId" AS bigint;
      CREATE TYPE "Tenant" AS ENUM ('north', 'south');
      ${outboxSchema('postgres')}
      ALTER TABLE outbox_messages ALTER id DROP IDENTITY;
      ALTER TABLE outbox_messages ALTER id TYPE "MessageId",
        ALTER tenant_id TYPE "Tenant" USING tenant_id::"Tenant";
      INSERT INTO outbox_messages (id, tenant_id, event_type, payload, ordering_key)
        VALUES (1, 'north', 'x', 'first', 'k'), (2, 'north', 'x', 'second', 'k')`)
      const got: string[] = []
      const dispatcher = createDispatcher({
        url: store.url,
        baseRetryDelaySeconds: 0,
        transport: async ({ payload, retryCount }) => {
          got.push(Buffer.from(payload).toString())
          if (retryCount === 0) throw new Error('not yet')
        },
      })
      await dispatcher.drain()
      await dispatcher.stop()
      expect(got).toEqual(['first', 'first', 'second', 'second'])
      await client.end()
      await store.dispose()
    })
  },
)
