import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import { Office } from '../../office.ts'
import { openDatabase } from '../../store/open.ts'
import { readEngineOf, readEngineQueues } from '../records.ts'

describe.each(stores)('the queues of engines on $name', (kind) => {
  let store: FreshStore
  let office: Office | undefined
  let warned: string[]

  beforeEach(async () => {
    store = await kind.fresh()
    warned = []
  })
  afterEach(async () => {
    await office?.close()
    office = undefined
    await store.dispose()
  })

  const nothing = () => {}
  const log = {
    debug: nothing,
    info: nothing,
    warn: (_: object, message: string) => void warned.push(message),
    error: nothing,
  }

  async function open(
    definitions: Record<string, { queue?: string; operations: string[] }>,
  ): Promise<Office> {
    await office?.close()
    office = await Office.open({ store: store.url, engines: { context: 'managed-app', definitions }, log })
    return office
  }

  async function engineOf(queue: string): Promise<string | null> {
    const db = openDatabase(store.url, { poolSize: 1 })
    try {
      return await db.session('read', (session) => readEngineOf(session, queue))
    } finally {
      await db.close()
    }
  }

  it('are in the store as soon as an office is open that defines them', async () => {
    await open({ mail: { queue: 'outgoing-mail', operations: ['send'] }, audit: { operations: ['check'] } })
    expect(await engineOf('outgoing-mail')).toBe('mail')
    expect(await engineOf('health-notifications-queue')).toBe('health')
    expect(await engineOf('orders')).toBeNull()
  })

  it('stay when an office without the definition opens, and change hands when another engine has them', async () => {
    await open({ mail: { queue: 'outgoing-mail', operations: ['send'] } })
    await open({})
    expect(await engineOf('outgoing-mail')).toBe('mail')
    expect(warned).toEqual([])
    await open({ post: { queue: 'outgoing-mail', operations: ['send'] } })
    expect(await engineOf('outgoing-mail')).toBe('post')
    expect(warned).toEqual([expect.stringContaining('that of another engine')])
  })

  it('are listed by name', async () => {
    await open({ mail: { queue: 'a', operations: ['send'] } })
    const db = openDatabase(store.url, { poolSize: 1 })
    const rows = await db.session('read', readEngineQueues)
    await db.close()
    expect(rows[0]).toMatchObject({ queue: 'a', engine: 'mail' })
    expect(rows.map(({ queue }) => queue)).toEqual([...rows.map(({ queue }) => queue)].sort())
  })
})
