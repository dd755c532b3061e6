import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bareStores, type FreshStore } from '../../test/world/stores.ts'
import { MIGRATIONS } from '../migrations.ts'
import type { Database } from './database.ts'
import { migrate } from './migrations.ts'
import { openDatabase } from './open.ts'
import { secretMigration, sharedSecret } from './secrets.ts'

describe.each(bareStores)('a shared secret on $name', (store) => {
  let place: FreshStore
  let servers: readonly Database[]

  beforeEach(async () => {
    place = await store.fresh()
    servers = Array.from({ length: 3 }, () => openDatabase(place.url, { poolSize: 2 }))
  })

  afterEach(async () => {
    for (const db of servers) await db.close()
    await place.dispose()
  })

  const migrated = async (): Promise<Database> => {
    const [db] = servers
    if (db === undefined) throw new Error('there is no server')
    await migrate(db, [secretMigration])
    return db
  }

  it('is one for all servers, also when they ask for it together the first time', async () => {
    await migrated()
    const asked = servers.flatMap((db) => [sharedSecret(db, 'sessions'), sharedSecret(db, 'sessions')])
    const found = (await Promise.all(asked)).map((secret) => Buffer.from(secret).toString('hex'))
    expect(new Set(found).size).toBe(1)
    expect(found[0]).toMatch(/^[0-9a-f]{64}$/)
  })

  it('is another under another name', async () => {
    const db = await migrated()
    expect(await sharedSecret(db, 'one')).not.toEqual(await sharedSecret(db, 'two'))
  })

  it('has its table added to a store of the version before', async () => {
    const [db] = servers
    if (db === undefined) throw new Error('there is no server')
    const before = MIGRATIONS.filter(({ number }) => number < secretMigration.number)
    await migrate(db, before)
    await migrate(db, [...before, secretMigration])
    expect(await sharedSecret(db, 'sessions')).toHaveLength(32)
  })
})
