/** Letters of an account go back once, and their entities say so. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { later, microseconds } from '../../src/core/clock.ts'
import { BartlebyError } from '../../src/core/errors.ts'
import { formatMicros } from '../../src/core/timestamp.ts'
import type { Letter } from '../../src/letters/letter.ts'
import type { AzureTables } from '../../src/outgoing/azure/keys.ts'
import type { Step } from '../world/azure-gate.ts'
import { type AzureServer, AzureWorld, type EntityDraft } from '../world/azure-world.ts'
import { describeAzurite } from '../world/azurite.ts'
import { stores } from '../world/stores.ts'

const RETRY = { edit: null, notes: null, actor: 'nell' }
const codeOf = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => 'done',
    (error: unknown) => (error instanceof BartlebyError ? error.code : String(error)),
  )
const text = (value: string) => ({ type: 'String', value })

describeAzurite('letters of an account', (azurite) => {
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

    async function one(draft: EntityDraft = {}) {
      const key = await world.fail(draft)
      await world.server.round()
      return { key, letter: await world.only() }
    }
    const again = async (letter: Letter): Promise<Letter> => (await world.caseFile(letter)).letter

    it('are sent, and every column of their entity is what it was or says so', async () => {
      const { key, letter } = await one({ Weight: { type: 'Double', value: '1.5' }, Tenant: 'blue' })
      const before = await world.entity(key)
      const { messageId, queue } = await world.letters.retry(letter, RETRY)
      await world.server.round()
      const { receivedMessageItems } = await world.queue().receiveMessages()
      expect(receivedMessageItems.map((each) => [each.messageId, each.messageText])).toEqual([
        [messageId, '{"n":1}'],
      ])
      expect(queue).toBe(world.queueName)
      const resolved = await again(letter)
      expect(resolved).toMatchObject({
        status: 'Resolved',
        resolution: 'retry',
        sentAs: messageId,
        notes: 'Retried',
      })
      const { etag, timestamp, ...after } = await world.entity(key)
      const { etag: _, timestamp: __, ...was } = before
      expect(after).toEqual({
        ...was,
        Status: text('Resolved'),
        ResolutionNotes: text('Retried'),
        ResolvedAtUtc: {
          type: 'DateTime',
          value: formatMicros(resolved.resolvedAt ?? resolved.lastFailureAt),
        },
        ResolvedBy: text('nell'),
      })
      expect(await world.server.azure.state()).toMatchObject({ unwritten: 0, uncertain: 0, troubles: [] })
    })

    it('are sent once, when eight ask at the same time on two servers', async () => {
      const { letter } = await one()
      const other = await world.another()
      const asked = Array.from({ length: 8 }, (_, i) =>
        codeOf((i % 2 === 0 ? world.server : other).letters.retry(letter, RETRY)),
      )
      expect((await Promise.all(asked)).toSorted()).toEqual(['done', ...Array(7).fill('letter_status_wrong')])
      expect(await world.messages()).toEqual(['{"n":1}'])
    })

    it('are discarded, expire and are restored in their entity, too', async () => {
      const { key, letter } = await one()
      const { etag: _, timestamp: __, ...was } = await world.entity(key)
      const columns = async () => {
        await world.server.round()
        const { etag: _, timestamp: __, ...now } = await world.entity(key)
        return now
      }
      await world.letters.change(letter, { status: 'Resolved', notes: 'no use', actor: 'nell' })
      const { resolvedAt } = await again(letter)
      expect(await columns()).toEqual({
        ...was,
        ...{ Status: text('Resolved'), ResolutionNotes: text('no use'), ResolvedBy: text('nell') },
        ResolvedAtUtc: { type: 'DateTime', value: formatMicros(resolvedAt ?? letter.lastFailureAt) },
      })
      await world.letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' })
      expect(await columns()).toEqual(was)
      await world.letters.change(letter, { status: 'Expired', notes: 'too old', actor: 'ned' })
      expect(await columns()).toEqual({
        ...was,
        ...{ Status: text('Expired'), ResolutionNotes: text('too old'), ResolvedBy: text('ned') },
      })
    })

    it('are reopened by the mark in a message that died again', async () => {
      const server = await world.another({ mark: true })
      const { letter } = await one({ OriginalMessage: '{"n": 1e2, "n": 2}' })
      await server.letters.retry(letter, RETRY)
      const [message = ''] = await world.messages()
      expect(message).toBe(
        `{"n": 1e2, "n": 2,"_bartleby":{"letter":"${letter.id}","attempt":${letter.version}}}`,
      )
      await world.fail({ OriginalMessage: message, ErrorMessage: 'again', CorrelationId: 'another' })
      await world.server.round()
      const open = await world.only()
      expect(open).toMatchObject({
        id: letter.id,
        status: 'Pending',
        errorMessage: 'again',
        dequeueCount: 10,
      })
      expect(Buffer.from(open.payload).toString()).toBe('{"n": 1e2, "n": 2}')
      expect(await world.operations(open)).toEqual(['capture', 'retry', 'reopen'])
      await world.letters.change(open, { status: 'Resolved', notes: null, actor: 'nell' })
      await world.server.round()
      expect(await world.entity({ partitionKey: 'hmac', rowKey: 'inst-7-00000002' })).toMatchObject({
        Status: text('Resolved'),
      })
    })

    it('are reopened by their correlation id only where exactly one sent letter of the queue has it', async () => {
      const { letter } = await one({ CorrelationId: 'same' })
      await world.letters.retry(letter, RETRY)
      await world.fail({ CorrelationId: 'same', OriginalQueue: 'another-queue' })
      await world.server.round()
      expect((await world.list()).length).toBe(2)
      await world.fail({ CorrelationId: 'same', ErrorMessage: 'again' })
      await world.server.round()
      expect((await world.list()).length).toBe(2)
      expect(await again(letter)).toMatchObject({ status: 'Pending', errorMessage: 'again' })
      await world.fail({ CorrelationId: 'same', ErrorMessage: 'a second one' })
      await world.server.round()
      const both = (await world.list({ originalQueue: world.queueName })).filter(
        ({ status }) => status === 'Pending',
      )
      expect(both.length).toBe(2)
      for (const each of both) await world.letters.retry(each, RETRY)
      await world.fail({ CorrelationId: 'same', ErrorMessage: 'which of them?' })
      await world.server.round()
      expect((await world.list({ originalQueue: world.queueName })).length).toBe(3)
    })

    it('are confirmed by a row of history that was written after the send, and by no other', async () => {
      const { letter } = await one({ CorrelationId: 'c1' })
      await world.ran({ CorrelationId: 'c1' })
      await world.server.round()
      // The service tells the time of a message in seconds.
      await new Promise((resolve) => setTimeout(resolve, 1_100))
      world.clock.thaw()
      await world.letters.retry(letter, RETRY)
      await world.server.round()
      expect((await again(letter)).confirmedAt).toBe(null)
      await world.ran({ CorrelationId: 'c1', Status: 'Failed', Error: 'no' })
      await world.server.round()
      expect((await again(letter)).confirmedAt).toBe(null)
      await world.ran({ CorrelationId: 'c1' })
      await world.server.round()
      expect((await again(letter)).confirmedAt).not.toBe(null)
      expect(await world.operations(letter)).toEqual(['capture', 'retry', 'confirm'])
    })

    it.each<[Step, string]>([
      ['claimed', 'resting'],
      ['marked', 'resting'],
      ['intended', 'uncertain'],
      ['sent', 'uncertain'],
      ['settled', 'sent'],
    ])('whose server dies when they are %s are %s, and nothing is sent twice', async (step, state) => {
      const { key, letter } = await one()
      await world.sendAndDie(letter, step)
      world.clock.advance(microseconds(120))
      const next = await world.another()
      await next.round()
      await next.round()
      const sent = step === 'sent' || step === 'settled' ? 1 : 0
      expect((await world.messages()).length).toBe(sent)
      if (state === 'resting') {
        expect(await world.entity(key)).not.toHaveProperty('ResolvedBy')
        await next.letters.retry(letter, RETRY)
        expect((await world.messages()).length).toBe(1)
        return
      }
      if (state === 'sent') {
        expect(await again(letter)).toMatchObject({ status: 'Resolved' })
        expect(await world.entity(key)).toMatchObject({ Status: text('Resolved'), ResolvedBy: text('nell') })
        return
      }
      expect(await next.azure.state()).toMatchObject({ uncertain: 1 })
      expect(await codeOf(next.letters.retry(letter, RETRY))).toBe('letter_send_unknown')
      expect((await world.caseFile(letter)).remarks).toContainEqual(
        expect.stringContaining(`bartleby azure settle hmac '${letter.rowKey}'`),
      )
      expect(await world.operations(letter)).toEqual(['capture', 'send-uncertain'])
      await next.azure.settleUncertain(letter.id, sent === 1, 'ned')
      expect(await codeOf(next.azure.settleUncertain(letter.id, true, 'ned'))).toBe('letter_send_known')
      if (sent === 0) await next.letters.retry(letter, RETRY)
      await next.round()
      expect(await again(letter)).toMatchObject({ status: 'Resolved', resolution: 'retry' })
      expect(await world.entity(key)).toMatchObject({
        Status: text('Resolved'),
        ResolutionNotes: text('Retried'),
      })
      expect((await world.messages()).length).toBe(1)
    })

    /** A server sends a letter and dies before it can say so. */
    async function leaveUncertain(letter: Letter, settings: Partial<AzureTables> = {}): Promise<void> {
      await world.sendAndDie(letter, 'sent', settings)
      world.clock.advance(microseconds(120))
      await world.server.round('recovery')
      expect(await world.server.azure.state()).toMatchObject({ uncertain: 1 })
    }

    it('that are uncertain are settled by a second failure with their mark: it had arrived, and died again', async () => {
      const { key, letter } = await one()
      await leaveUncertain(letter, { mark: true })
      const [message = ''] = await world.messages()
      expect(message).toContain(`"_bartleby":{"letter":"${letter.id}"`)
      // An engine may have made another correlation id of it; without the mark nobody would know.
      const next = await world.fail({
        ...{ OriginalMessage: message, ErrorMessage: 'again', CorrelationId: 'another' },
      })
      await world.server.round()
      expect(await again(letter)).toMatchObject({
        ...{ status: 'Pending', errorMessage: 'again', rowKey: key.rowKey, dequeueCount: 10 },
      })
      expect(await world.operations(letter)).toEqual(['capture', 'send-uncertain', 'retry', 'reopen'])
      expect(await world.server.azure.state()).toMatchObject({ uncertain: 0 })
      // Both keys find it.
      expect((await world.letters.get({ engine: 'hmac', rowKey: next.rowKey })).letter.id).toBe(letter.id)
      await world.server.round()
      expect(await world.entity(key)).toMatchObject({
        Status: text('Resolved'),
        ResolutionNotes: text('Retried'),
      })
      await world.letters.retry(letter, RETRY)
      expect((await world.messages()).length).toBe(2)
    })

    it('that are uncertain are not settled by a second failure without a mark: it may be of another message', async () => {
      const { letter } = await one({ CorrelationId: 'c8' })
      await leaveUncertain(letter)
      await world.fail({ CorrelationId: 'c8', ErrorMessage: 'again' })
      await world.server.round()
      expect((await world.list()).length).toBe(2)
      expect(await world.server.azure.state()).toMatchObject({ uncertain: 1 })
      await world.server.azure.settleUncertain(letter.id, true, 'nell')
    })

    it('that are uncertain are settled by what their engine writes', async () => {
      const { letter } = await one({ CorrelationId: 'c7' })
      await leaveUncertain(letter)
      await world.ran({ CorrelationId: 'c7' })
      await world.server.round()
      expect(await again(letter)).toMatchObject({ status: 'Resolved', resolution: 'retry' })
      expect((await again(letter)).confirmedAt).not.toBe(null)
    })

    /** Lets our clock pass what was written in Azure: Azurite tells its time to the millisecond. */
    function passMoment(): void {
      world.clock.thaw()
      world.clock.freeze(later(world.clock.now(), 5_000n))
    }

    it('follow what others do in Azure, and what lost stands in the case file', async () => {
      const { key, letter } = await one()
      await world.dlq.updateEntity(
        { ...key, Status: 'Resolved', ResolutionNotes: 'by hand', ResolvedBy: 'ops' },
        'Merge',
      )
      await world.server.round()
      expect(await again(letter)).toMatchObject({
        status: 'Resolved',
        resolution: 'discard',
        resolvedBy: 'azure:ops',
        notes: 'by hand',
      })
      await world.dlq.updateEntity({ ...key, Status: 'Pending' }, 'Merge')
      await world.server.round()
      expect(await again(letter)).toMatchObject({ status: 'Pending' })
      world.clock.thaw()
      // Theirs is later: ours was decided before, and not yet written.
      const offline = world.offline()
      await offline.change(letter, { status: 'Expired', notes: 'ours', actor: 'nell' })
      expect(await world.server.azure.state()).toMatchObject({ unwritten: 1 })
      expect((await world.caseFile(letter)).remarks).toEqual([
        expect.stringMatching(/^Not yet written to its entity in Azure, since 2\S+Z\.$/),
      ])
      await world.dlq.updateEntity(
        { ...key, Status: 'Resolved', ResolutionNotes: 'theirs', ResolvedBy: 'ops' },
        'Merge',
      )
      await world.server.round()
      expect(await again(letter)).toMatchObject({ status: 'Resolved', notes: 'theirs' })
      expect(await world.entity(key)).toMatchObject({
        Status: text('Resolved'),
        ResolutionNotes: text('theirs'),
      })
      const sofar = ['capture', 'discard', 'restore', 'expire', 'restore', 'discard']
      expect(await world.operations(letter)).toEqual(sofar)
      const { history, remarks } = await world.caseFile(letter)
      expect(remarks).toEqual([])
      expect(history.map(({ operation, actor, notes }) => [operation, actor, notes])).toEqual(
        expect.arrayContaining([
          ['expire', 'nell', 'ours'],
          ['discard', 'azure:ops', 'theirs'],
        ]),
      )
      // Ours is later: it is written over theirs, which stands in history.
      await world.dlq.updateEntity({ ...key, Status: 'Expired', ResolutionNotes: 'theirs again' }, 'Merge')
      passMoment()
      await offline.change(letter, { status: 'Pending', notes: null, actor: 'nell' })
      await world.server.round()
      await world.server.round()
      expect(await again(letter)).toMatchObject({ status: 'Pending' })
      expect(await world.entity(key)).toMatchObject({ Status: text('Pending') })
      expect(await world.operations(letter)).toEqual([...sofar, 'restore', 'change-overruled'])
      expect((await world.caseFile(letter)).history[0]).toMatchObject({
        ...{ operation: 'change-overruled', actor: 'azure:ops', notes: 'Expired in Azure: theirs again' },
      })
      // The same word, said by both for other reasons.
      await world.dlq.updateEntity(
        { ...key, Status: 'Resolved', ResolutionNotes: 'done by hand', ResolvedBy: 'ops' },
        'Merge',
      )
      passMoment()
      await offline.change(letter, { status: 'Resolved', notes: 'no use', actor: 'nell' })
      await world.server.round()
      await world.server.round()
      expect(await world.entity(key)).toMatchObject({
        ResolutionNotes: text('no use'),
        ResolvedBy: text('nell'),
      })
      expect((await world.caseFile(letter)).history.map(({ notes }) => notes)).toEqual(
        expect.arrayContaining(['no use', 'Resolved in Azure: done by hand']),
      )
    })

    it('that an engine fails on the same entity again have another attempt', async () => {
      const { key, letter } = await one()
      await world.letters.retry(letter, RETRY)
      await world.server.round()
      await world.dlq.updateEntity(
        {
          ...key,
          ...{ Status: 'Pending', ErrorMessage: 'once more', DequeueCount: { type: 'Int32', value: '2' } },
          LastFailureAtUtc: { type: 'DateTime', value: '2026-11-02T10:20:30.123456Z' },
        },
        'Merge',
      )
      await world.server.round()
      expect(await again(letter)).toMatchObject({
        status: 'Pending',
        errorMessage: 'once more',
        dequeueCount: 7,
      })
    })

    it('without a way back are refused in words, and stay as they are', async () => {
      await world.fail({ OriginalQueue: 'N/A' })
      await world.fail({ OriginalQueue: 'no-such-queue' })
      await world.fail({ OriginalMessage: 'x'.repeat(32_000) })
      const gone = await world.fail()
      await world.server.round()
      await world.dlq.deleteEntity(gone.partitionKey, gone.rowKey)
      const letters = await Promise.all([1, 2, 4].map((n) => world.only({ correlationId: `corr-${n}` })))
      const codes = await Promise.all(letters.map((letter) => codeOf(world.letters.retry(letter, RETRY))))
      expect(codes).toEqual(['letter_without_queue', 'letter_queue_gone', 'letter_entity_gone'])
      const large = await world.only({ correlationId: 'corr-3' })
      const edit = { payload: Buffer.alloc(70_000, 'x') }
      expect(await codeOf(world.letters.retry(large, { ...RETRY, edit }))).toBe('letter_message_refused')
      await world.server.round()
      for (const letter of [...letters, large])
        expect(await again(letter)).toMatchObject({ status: 'Pending', editedPayload: null })
    })

    it('leave as they were edited; bytes that are no text leave in base64', async () => {
      const { letter } = await one()
      await world.letters.retry(letter, { ...RETRY, edit: { payload: Buffer.from([0, 255]) } })
      expect(await world.messages()).toEqual(['AP8='])
      expect([...((await again(letter)).editedPayload ?? [])]).toEqual([0, 255])
    })

    it('are removed from the tables only where the office was told so, and never while they are pending', async () => {
      const owner: AzureServer = await world.another({ retention: 'bartleby' })
      const old = { ResolvedAtUtc: { type: 'DateTime', value: '2026-11-01T00:00:00Z' } }
      for (let i = 0; i < 5; i++) await world.fail()
      for (let i = 0; i < 5; i++) await world.fail({ Status: 'Resolved', ...old })
      for (let i = 0; i < 5; i++) await world.fail({ partitionKey: 'tls', Status: 'Expired' })
      await world.ran()
      await world.server.round()
      const count = async (table: typeof world.dlq) => {
        let entities = 0
        for await (const _ of table.listEntities()) entities++
        return entities
      }
      await owner.round()
      expect([await count(world.dlq), await count(world.history)]).toEqual([15, 1])
      world.clock.advance(microseconds(120 * 86_400))
      await world.server.round()
      expect([await count(world.dlq), await count(world.history)]).toEqual([15, 1])
      const owning = await world.another({ retention: 'bartleby' })
      await owning.round()
      await owning.round()
      expect([await count(world.dlq), await count(world.history)]).toEqual([5, 0])
      expect((await world.list({ status: 'Pending' })).length).toBe(5)
    })
  })
})
