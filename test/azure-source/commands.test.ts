/** `bartleby azure`, and the other commands on letters of an account, as a user runs them. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Gate, gateTo } from '../world/azure-gate.ts'
import { AzureWorld } from '../world/azure-world.ts'
import { describeAzurite } from '../world/azurite.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { type FreshStore, freshSqlite, type StoreKind } from '../world/stores.ts'
import { bartleby } from '../world/terminal-double.ts'

const SQLITE: StoreKind = { name: 'sqlite', fresh: freshSqlite }
const FORBIDDEN = { status: 403, body: '{"odata.error":{"code":"AuthorizationPermissionMismatch"}}' }

describeAzurite('bartleby', (azurite) => {
  let world: AzureWorld
  let gate: Gate
  let place: FreshStore
  let config: string
  beforeEach(async () => {
    gate = await gateTo(azurite().ports)
    // The engines' side; the office that is asked is another one, on the same account.
    world = await AzureWorld.open(azurite(), SQLITE, { connectionString: gate.connectionString })
    place = await freshSqlite()
    config = await configured()
  })
  afterEach(async () => {
    gate.decide(() => 'pass')
    await world.close()
    await place.dispose()
    await gate.close()
  })

  async function configured(more: object = {}): Promise<string> {
    const { storageAccountName, dlqTableName, historyTableName, connectionStringFile } = world.settings
    const tables = { storageAccountName, dlqTableName, historyTableName, connectionStringFile }
    const path = join(dirname(connectionStringFile ?? ''), `bartleby-${Math.random()}.json`)
    await writeFile(path, JSON.stringify({ engines: { tables: { ...tables, pollSeconds: 1, ...more } } }))
    return path
  }

  describe('azure check', () => {
    it('says line by line what may be done, and leaves nothing behind', async () => {
      await world.fail()
      const { code, out, err } = await bartleby(['azure', 'check', '--config', config])
      expect({ code, err }).toEqual({ code: 0, err: '' })
      const { dlqTableName: dlq, historyTableName: history } = world.settings
      expect(out.split('\n')).toEqual([
        `✓ table ${dlq}: its letters can be read`,
        `✓ table ${dlq}: acts on letters can be written to it`,
        `✓ table ${history}: what engines did can be read, and sends confirmed by it`,
        '✓ all queues: the account lists its queues',
        `✓ queue ${world.queueName}: letters can go back there`,
        '✓ partitions: all partitions are taken in',
        '✓ retention: entities are removed by others, never here (retention: bartleby changes that)',
      ])
      const keys: unknown[] = []
      for await (const { partitionKey } of world.dlq.listEntities()) keys.push(partitionKey)
      expect(keys).toEqual(['hmac'])
    })

    it('says what the identity may not do, with a code', async () => {
      await world.fail()
      gate.decide(({ method, service }) => (service === 'tables' && method === 'POST' ? FORBIDDEN : 'pass'))
      const { code, out, err } = await bartleby(['azure', 'check', '--config', config])
      expect({ code, err }).toEqual({ code: 1, err: 'bartleby: 1 thing is missing' })
      expect(out).toContain(
        `✗ table ${world.settings.dlqTableName}: this identity may not: acts on letters can be written to it (AuthorizationPermissionMismatch`,
      )
      const { out: json } = await bartleby(['azure', 'check', '--config', config, '--json'])
      expect(JSON.parse(json)).toContainEqual(expect.objectContaining({ verdict: 'missing' }))
    })

    it('says what does not exist, and which engines and poison queues it looked at', async () => {
      await world.history.deleteTable()
      const poison = `${world.queueName}-poison`
      const some = await configured({ engines: ['hmac'], poison: [poison], retention: 'bartleby' })
      const { code, out } = await bartleby(['azure', 'check', '--config', some])
      expect(code).toBe(1)
      const { historyTableName } = world.settings
      expect(out).toContain(`✗ table ${historyTableName}: does not exist; once it does, what engines did`)
      expect(out).toContain(`✗ queue ${poison}: does not exist`)
      expect(out).toContain('✓ partitions: taken in are hmac')
      expect(out).toContain('✓ retention: entities are removed here after 90 days')
    })

    it('knows an account that is away from one that refuses', async () => {
      gate.decide(() => 'away')
      const { code, out } = await bartleby(['azure', 'check', '--config', config])
      expect(code).toBe(0)
      expect(out).toMatch(/^\? table \S+: the account does not answer now \(/)
    })

    it('needs a configuration with an account, and a connection string that can be read', async () => {
      const nothing = join(dirname(config), 'nothing.json')
      await writeFile(nothing, '{}')
      expect(await bartleby(['azure', 'check', '--config', nothing])).toMatchObject({
        code: 2,
        err: expect.stringContaining('the configuration has no engines.tables.storageAccountName'),
      })
      const unread = await configured({ connectionStringFile: '/no/such/file' })
      expect(await bartleby(['azure', 'check', '--config', unread])).toMatchObject({
        err: expect.stringContaining("'/no/such/file'"),
      })
      const other = await configured({ storageAccountName: 'contosoengines' })
      expect((await bartleby(['azure', 'check', '--config', other])).err).toMatch(
        /devstoreaccount1.*contosoengines/,
      )
    })
  })

  describe('on a server with an account', () => {
    let server: ServerHere
    beforeEach(async () => {
      server = await startServer({ store: place.url, config })
    })
    afterEach(() => server.stop())

    const run = (...args: readonly string[]) => bartleby(args, { env: { BARTLEBY_URL: server.url } })
    const until = (what: () => Promise<string>) => expect.poll(what, { timeout: PATIENCE_MS })
    const listed = async () => (await run('letters', 'list', '--row-keys')).out

    it('names letters by their RowKey: show, discard, restore, retry, plan and start', async () => {
      const { rowKey } = await world.fail({ rowKey: 'inst 7 (ü) $1%2F' })
      const other = await world.fail()
      await until(listed).toContain(other.rowKey)
      expect(await listed()).toContain(rowKey)
      const { code, out } = await run('letters', 'show', 'hmac', rowKey)
      expect(code).toBe(0)
      expect(out).toMatch(`hmac ${rowKey}`)
      expect(await run('letters', 'discard', 'hmac', rowKey, '--notes', 'no use')).toMatchObject({
        code: 0,
        out: `hmac ${rowKey} was discarded`,
      })
      expect(await run('letters', 'restore', 'hmac', rowKey)).toMatchObject({ code: 0 })
      expect(await run('letters', 'retry', 'hmac', rowKey)).toMatchObject({ code: 0 })
      await until(async () => (await run('letters', 'show', 'hmac', rowKey)).out).not.toContain(
        'Not yet written',
      )
      expect(await world.entity({ partitionKey: 'hmac', rowKey })).toMatchObject({
        Status: { value: 'Resolved' },
      })
      const planned = await run('redrive', 'plan', '--id', `hmac/${other.rowKey}`, '--json')
      expect(JSON.parse(planned.out)).toMatchObject({ counts: { planned: 1 } })
      const { id } = JSON.parse(planned.out)
      expect(await run('redrive', 'start', id, '--watch')).toMatchObject({ code: 0 })
      expect((await world.messages()).length).toBe(2)
      expect((await run('redrive', 'show', id, '--letters')).out).toContain(other.rowKey)
    })

    it('azure status says how far tables were read, what is not yet written and what nobody knows', async () => {
      const { rowKey } = await world.fail()
      await until(listed).toContain(rowKey)
      const { dlqTableName } = world.settings
      await until(async () => (await run('azure', 'status')).out).toMatch(
        /^account devstoreaccount1: 0 acts not yet written, 0 letters uncertain\n/,
      )
      expect((await run('azure', 'status')).out).toMatch(RegExp(`\\n${dlqTableName} +2\\S+Z`))
      expect(JSON.parse((await run('azure', 'status', '--json')).out)).toMatchObject({ configured: true })
      gate.decide(({ service, method }) => (service === 'queues' && method === 'POST' ? 'deaf' : 'pass'))
      const retried = await run('letters', 'retry', 'hmac', rowKey)
      expect(retried.code).not.toBe(0)
      expect((await run('azure', 'status')).out).toContain('1 letters uncertain')
      expect((await run('letters', 'show', 'hmac', rowKey)).out).toContain(
        `bartleby azure settle hmac '${rowKey}'`,
      )
      gate.decide(() => 'pass')
      expect(await run('azure', 'settle', 'hmac', rowKey)).toMatchObject({
        code: 2,
        err: expect.stringContaining('say --arrived or --lost'),
      })
      expect(await run('azure', 'settle', 'hmac', rowKey, '--arrived')).toMatchObject({
        code: 0,
        out: 'the letter is Resolved',
      })
      const twice = await run('azure', 'settle', 'hmac', rowKey, '--lost')
      expect(twice.code).not.toBe(0)
      expect((await world.messages()).length).toBe(1)
      gate.decide(({ service }) => (service === 'tables' ? 'away' : 'pass'))
      expect((await run('letters', 'restore', 'hmac', rowKey)).code).toBe(0)
      await until(async () => (await run('azure', 'status')).out).toContain('1 acts not yet written')
      await until(async () => (await run('letters', 'show', 'hmac', rowKey)).out).toContain('Not yet written')
    })

    it('azure status says so where no account is configured', async () => {
      const bare = await startServer({ store: 'sqlite::memory:' })
      try {
        const { code, out } = await bartleby(['azure', 'status'], { env: { BARTLEBY_URL: bare.url } })
        expect({ code, out }).toEqual({
          code: 0,
          out: 'no account is configured on this server (engines.tables.storageAccountName)',
        })
      } finally {
        await bare.stop()
      }
    })
  })
})
