/** Entities of an account become letters, once each. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { formatMicros } from '../../src/core/timestamp.ts'
import { createEngineViews } from '../../src/sources/engines/views.ts'
import { sql } from '../../src/store/database.ts'
import { AzureWorld } from '../world/azure-world.ts'
import { describeAzurite } from '../world/azurite.ts'
import { stores } from '../world/stores.ts'

const text = (value: string) => ({ type: 'String', value })
const readView = sql('test.view', 'SELECT "RowKey" FROM bartleby."engineDlq"')

describeAzurite('entities of an account', (azurite) => {
  describe.each(stores)('on $name', (kind) => {
    let world: AzureWorld
    beforeEach(async () => {
      world = await AzureWorld.open(azurite(), kind)
    })
    afterEach(async () => {
      try {
        expect(await world.violations()).toEqual([])
      } finally {
        await world.close()
      }
    })

    it('become letters with all that their columns say, to the microsecond', async () => {
      const { rowKey } = await world.fail({
        OriginalMessage: '{"instanceId":"inst-7","n":12345678901234567890}',
      })
      await world.server.round()
      const letter = await world.only()
      expect(letter).toMatchObject({
        ...{ source: 'azure', engine: 'hmac', rowKey, instanceId: 'inst-7', status: 'Pending' },
        ...{ originalQueue: world.queueName, correlationId: 'corr-1', dequeueCount: 5, encoding: 'plain' },
        errorMessage: 'connection refused',
        sourceId: `devstoreaccount1/${world.settings.dlqTableName}/hmac/${rowKey}`,
      })
      expect(formatMicros(letter.firstFailureAt)).toBe('2026-11-01T10:20:30.123456Z')
      expect(Buffer.from(letter.payload).toString()).toBe('{"instanceId":"inst-7","n":12345678901234567890}')
      expect((await world.letters.get({ engine: 'hmac', rowKey })).letter.id).toBe(letter.id)
      // Also where the account is gone from the configuration.
      expect((await world.offline().get({ engine: 'hmac', rowKey })).letter.id).toBe(letter.id)
    })

    it('keep their RowKey, whatever Azure lets it be; those that no address can end with have one of the office', async () => {
      const printable = Array.from({ length: 0xff - 0x20 }, (_, i) => String.fromCharCode(0x20 + i))
      const legal = printable.filter((each) => !/[/\\#?\p{Cc}]/u.test(each)).join('')
      const kept = [legal, '漢字🦭', ' ', '%2F', '...', 'inst-7-20261101T102030123456Z', 'a'.repeat(400)]
      const others = ['', '.', '..', 'é'.repeat(512)]
      for (const rowKey of [...kept, ...others]) await world.fail({ rowKey })
      await world.server.round()
      const letters = await world.list()
      expect(letters.map(({ rowKey }) => rowKey)).toEqual(expect.arrayContaining(kept))
      expect(letters.filter(({ rowKey }) => /^inst-7-\d{8}T\d{24}Z$/.test(rowKey)).length).toBe(others.length)
      for (const { id, engine, rowKey } of letters)
        expect((await world.letters.get({ engine, rowKey })).letter.id).toBe(id)
      const long = await world.letters.get({ engine: 'hmac', rowKey: 'é'.repeat(512) })
      expect(letters.map(({ id }) => id)).toContain(long.letter.id)
    })

    it('have their RowKey in the view of letters, too', async () => {
      const { rowKey } = await world.fail()
      await world.fail({ partitionKey: 'kafka' })
      await world.server.round()
      await createEngineViews(world.db, { dlqTableName: 'engineDlq', historyTableName: 'engineHistory' })
      const rows = await world.db.session('test', (session) => session.rows<{ RowKey: string }>(readView))
      const letters = await world.list()
      expect(rows.map((row) => row.RowKey).toSorted()).toEqual(letters.map((each) => each.rowKey).toSorted())
      expect(rows.map((row) => row.RowKey)).toContain(rowKey)
    })

    it('are taken in once, however often and by however many servers they are read', async () => {
      for (let i = 0; i < 25; i++) await world.fail()
      const other = await world.another()
      await Promise.all([world.server.round(), other.round(), world.server.round()])
      await world.server.round()
      await (await world.another()).round()
      expect((await world.list()).length).toBe(25)
    })

    it('are not missed when they are written late, with a time before the mark', async () => {
      await world.fail()
      await world.server.round()
      await world.fail({ LastFailureAtUtc: { type: 'DateTime', value: '2020-01-01T00:00:00Z' } })
      await world.server.round()
      expect((await world.list()).length).toBe(2)
    })

    it('can be odd in every way, and none is lost', async () => {
      const columns = [
        'Engine',
        'InstanceId',
        'OriginalQueue',
        'OriginalMessage',
        'ErrorMessage',
        'DequeueCount',
      ]
      const others = ['FirstFailureAtUtc', 'LastFailureAtUtc', 'Status', 'CorrelationId']
      for (const column of [...columns, ...others]) await world.fail({ [column]: undefined })
      await world.fail({ DequeueCount: 'five', LastFailureAtUtc: 'yesterday', FirstFailureAtUtc: 12 })
      await world.fail({ Status: 'Banana', OriginalMessage: { type: 'Binary', value: 'AP8B' } })
      await world.fail({ OriginalQueue: 'N/A', OriginalMessage: 'test1234' })
      await world.fail({
        CorrelationId: 17,
        ErrorMessage: 'nul and \ud800 half'.toWellFormed(),
        Tenant: 'blue',
      })
      await world.server.round()
      const letters = await world.list()
      expect(letters.length).toBe(14)
      const banana = await world.only({ correlationId: 'corr-12' })
      expect(banana.status).toBe('Pending')
      expect([...banana.payload]).toEqual([0, 255, 1])
      expect(JSON.parse(Buffer.from(banana.headers ?? '').toString()).odd).toContain(
        "Status 'Banana' is none of",
      )
      const plain = await world.only({ correlationId: 'corr-13' })
      expect([plain.originalQueue, plain.encoding, Buffer.from(plain.payload).toString()]).toEqual([
        null,
        'plain',
        'test1234',
      ])
      expect(
        JSON.parse(Buffer.from((await world.only({ correlationId: '17' })).headers ?? '').toString()),
      ).toMatchObject({ Tenant: 'blue' })
    })

    it('may have every key that Azure allows; engines that the office cannot have are its own', async () => {
      const keys = ["it's", 'ümläut 漢字', 'a b+c&d=e', 'x%20y', '"quoted"', 'UPPER.case', 'kafka', 'office']
      for (const partitionKey of keys) await world.fail({ partitionKey, rowKey: `${partitionKey} $:@!*()` })
      await world.server.round()
      expect((await world.list({ engine: 'azure' })).length).toBe(keys.length)
      const letter = await world.only({ engine: 'azure', correlationId: 'corr-1' })
      await world.letters.change(letter, { status: 'Expired', notes: 'old', actor: 'nell' })
      await world.server.round()
      expect(await world.entity({ partitionKey: "it's", rowKey: "it's $:@!*()" })).toMatchObject({
        Status: { value: 'Expired' },
      })
    })

    it('of engines that are not named stay where they are', async () => {
      await world.fail()
      await world.fail({ partitionKey: 'tls' })
      const only = await world.another({ engines: ['tls'] })
      await only.round()
      expect((await world.list()).map(({ engine }) => engine)).toEqual(['tls'])
    })

    it('that were resolved or given up before are letters that were, too', async () => {
      await world.fail({ Status: 'Resolved', ResolutionNotes: 'Retried', ResolvedBy: 'ops' })
      await world.fail({ Status: 'Resolved', ResolutionNotes: 'no use', ResolvedBy: 'ops' })
      await world.fail({ Status: 'Expired' })
      await world.server.round()
      const found = (await world.list()).map(({ status, resolution, resolvedBy }) => [
        status,
        resolution,
        resolvedBy,
      ])
      expect(found.toSorted()).toEqual([
        ['Expired', 'expire', 'azure:unknown'],
        ['Resolved', 'complete', 'azure:ops'],
        ['Resolved', 'discard', 'azure:ops'],
      ])
    })

    it('in base64 are read as the bytes that they encode', async () => {
      const message = Buffer.from('{"ü":1}').toString('base64')
      await world.fail({ OriginalMessage: message })
      await world.server.round()
      const letter = await world.only()
      expect([letter.encoding, Buffer.from(letter.payload).toString()]).toEqual(['base64', '{"ü":1}'])
      await world.letters.retry(letter, { edit: null, notes: null, actor: 'nell' })
      expect(await world.messages()).toEqual([message])
    })

    it('of history are history, once each, with what they say', async () => {
      await world.ran({ rowKey: 'one' })
      await world.ran({ Status: 'Failed', Error: 'no route' })
      await world.ran({ Status: 'Perhaps', Operation: 'Retry Now!' })
      await world.server.round()
      await world.server.round()
      await (await world.another()).round()
      const { items } = await world.books.list({ engine: 'hmac' })
      expect(
        items.map(({ operation, status, durationMs }) => [operation, status, durationMs]).toSorted(),
      ).toEqual([
        ['retry-now-', 'Failed', 1234],
        ['rotate', 'Failed', 1234],
        ['rotate', 'Succeeded', 1234],
      ])
    })

    it('of history have every column on file as the table has it, and no act on a letter changes them', async () => {
      const columns = {
        ...{ Engine: text('hmac'), InstanceId: text('inst-9'), Operation: text('rotate') },
        ...{ Status: text('Failed'), DurationMs: { type: 'Int64', value: '9007199254740991' } },
        ...{ Input: text('{"n": 1.0, "ü": 12345678901234567890}'), Output: text('{"half": true}') },
        ...{ Error: text('key vault ü does not answer'), CorrelationId: text('c1') },
        CreatedAtUtc: { type: 'DateTime', value: '2026-11-17T10:20:30.123457Z' },
      }
      const key = { partitionKey: 'hmac', rowKey: 'c1-20261117T102030123457Z' }
      await world.history.createEntity({ ...key, ...columns })
      const found = async () => {
        const { etag, timestamp, ...rest } = await world.entity(key, world.history)
        return { rest, etag, timestamp }
      }
      const before = await found()
      expect(before.rest).toEqual({ ...key, ...columns })
      await world.fail({ CorrelationId: 'c1' })
      await world.server.round()
      const [item] = (await world.books.list({ engine: 'hmac', operation: 'rotate' })).items
      const entry = await world.books.get('hmac', item?.rowKey ?? '')
      expect({ ...entry, createdAt: formatMicros(entry.createdAt) }).toMatchObject({
        ...{ engine: columns.Engine.value, instanceId: columns.InstanceId.value },
        ...{ operation: columns.Operation.value, status: columns.Status.value },
        ...{ durationMs: Number(columns.DurationMs.value), error: columns.Error.value },
        ...{ createdAt: columns.CreatedAtUtc.value, correlationId: columns.CorrelationId.value },
      })
      expect(Buffer.from(entry.input ?? '').toString()).toBe(columns.Input.value)
      expect(Buffer.from(entry.output ?? '').toString()).toBe(columns.Output.value)
      const letter = await world.only()
      const acts = [
        () => world.letters.change(letter, { status: 'Resolved', notes: 'no use', actor: 'nell' }),
        () => world.letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' }),
        () => world.letters.change(letter, { status: 'Expired', notes: null, actor: 'nell' }),
        () => world.letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' }),
        () => world.letters.retry(letter, { edit: null, notes: null, actor: 'nell' }),
      ]
      for (const act of acts) {
        await act()
        await world.server.round()
        expect(await found()).toEqual(before)
      }
      expect((await world.books.list({ engine: 'hmac', operation: 'rotate' })).items.length).toBe(1)
    })

    it('of history that miss columns have what the service knows of them', async () => {
      await world.history.createEntity({ partitionKey: 'hmac', rowKey: 'bare' })
      await world.server.round()
      const [item] = (await world.books.list({ engine: 'hmac' })).items
      const entry = await world.books.get('hmac', item?.rowKey ?? '')
      expect(entry).toMatchObject({
        ...{ engine: 'hmac', instanceId: 'publisher', operation: 'engine-run', status: 'Failed' },
        ...{
          durationMs: 0,
          input: null,
          output: null,
          correlationId: 'bare',
          error: 'the entity has no Status',
        },
      })
    })

    it('may lie in a poison queue: they are taken out once they are letters, and go back to the queue before', async () => {
      const poison = `${world.queueName}-poison`
      await world.queue(poison).create()
      await world
        .queue(poison)
        .sendMessage(Buffer.from('{"instanceId":"i1","correlationId":"c1"}').toString('base64'))
      await world.queue(poison).sendMessage('not json')
      const server = await world.another({ poison: [poison] })
      await server.round()
      await server.round()
      expect(await world.messages(poison)).toEqual([])
      const letters = await world.list({ engine: 'azure' })
      expect(letters.map(({ instanceId, originalQueue }) => [instanceId, originalQueue]).toSorted()).toEqual([
        ['i1', world.queueName],
        ['publisher', world.queueName],
      ])
      for (const letter of letters)
        await server.letters.retry(letter, { edit: null, notes: null, actor: 'nell' })
      const back = [Buffer.from('{"instanceId":"i1","correlationId":"c1"}').toString('base64'), 'not json']
      expect((await world.messages()).toSorted()).toEqual(back.toSorted())
    })
  })
})
